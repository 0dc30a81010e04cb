//! Other implementations read Tautline's messages by these schemas: every name in them has a
//! comment.

use std::fs;
use std::path::Path;

/// Tables, structs, enums and unions, their fields and their values each have a comment above.
#[test]
fn every_name_in_a_schema_is_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut unexplained = Vec::new();
    let mut names = 0;
    for entry in fs::read_dir(folder).expect("the schemas are there") {
        let path = entry.expect("a file").path();
        let text = fs::read_to_string(&path).expect("a schema");
        let mut above = "";
        // A union's members are tables, documented at their declaration.
        let mut in_union = false;
        for line in text.lines().map(str::trim) {
            let opens = ["table ", "struct ", "enum ", "union "];
            let declares = opens.iter().any(|word| line.starts_with(word));
            in_union = line.starts_with("union ") || in_union && line != "}";
            let is_field = line.ends_with(';') && line.contains(':');
            let is_value = line.ends_with(',') && !line.starts_with("//") && !in_union;
            if declares || is_field || is_value {
                names += 1;
                if !above.starts_with("///") {
                    unexplained.push(format!("{}: {line}", path.display()));
                }
                assert!(!declares || !line.ends_with('}') || line.ends_with("{}"), "{line}");
            }
            above = line;
        }
    }
    assert!(names > 150, "only {names} names: are these the schemas?");
    assert!(unexplained.is_empty(), "without a comment:\n{}", unexplained.join("\n"));
}
