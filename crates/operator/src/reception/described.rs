use std::collections::BTreeSet;

use tautline_guard::description::{Reading, ValueInfo};
use tautline_message::{Description, Values};
use tautline_net::metrics::{Labels, Page};

/// Newest description and values of the vehicle's machine.
#[derive(Clone, Default, Debug)]
pub(crate) struct DescribedMachine {
    /// Newest description; `None` before the session's first.
    description: Option<Description>,
    /// Newest values; `None` before the session's first.
    values: Option<Values>,
}

impl DescribedMachine {
    pub(super) fn handle_description(&mut self, description: Description) {
        self.description = Some(description);
    }

    pub(super) fn handle_values(&mut self, values: Values) {
        self.values = Some(values);
    }

    /// Adds the values to a metrics page, those with a number and those with a text; of values with
    /// the same name only the first, and none unless the description has the values' revision.
    pub(super) fn add_to(&self, page: &mut Page) {
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        for (value, reading) in self.named() {
            let labels = Labels::of("name", value.name.as_str());
            match reading {
                Reading::Number(number) => {
                    numbers.push((labels.and("unit", value.unit.as_str()), f64::from(*number)));
                }
                Reading::Text(text) => texts.push((labels.and("text", text.as_str()), 1.0)),
            }
        }
        page.gauges("machine_value", None, "Values that the machine reports", numbers);
        page.gauges("machine_text", None, "1 for each text that the machine reports", texts);
    }

    /// Returns the newest readings with the declarations of their values, the first for each name;
    /// none unless description and values have the same revision.
    fn named(&self) -> impl Iterator<Item = (&ValueInfo, &Reading)> {
        let known = self.description.as_ref().zip(self.values.as_ref());
        // Until both are of one machine, an index names nothing.
        let known = known.filter(|(description, values)| description.revision == values.revision);
        let mut names = BTreeSet::new();
        let readings = known.into_iter().flat_map(|(description, values)| {
            values.readings.iter().filter_map(|(index, reading)| {
                Some((description.values.get(usize::from(*index))?, reading))
            })
        });
        readings.filter(move |(value, _)| names.insert(value.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use tautline_guard::description::{Name, Revision, Text, Unit, ValueForm};
    use tautline_units::Instant;

    use super::*;

    fn value(name: &str, unit: &str) -> ValueInfo {
        let none = [f32::NAN; 2];
        let (name, unit) = (Name::new(name).unwrap(), Unit::new(unit).unwrap());
        let form = ValueForm::Number;
        ValueInfo { name, unit, form, range: none, warning: none, alarm: none }
    }

    #[test]
    fn metrics_have_the_values_of_the_newest_description_by_name() {
        let revision = |number| Revision::new(number).unwrap();
        let values = vec![value("battery", "V"), value("task", ""), value("battery", "A")];
        let (axes, actions) = (Vec::new(), Vec::new());
        let mut machine = DescribedMachine::default();
        let page = |machine: &DescribedMachine| {
            let mut page = Page::new("tautline_operator");
            machine.add_to(&mut page);
            page.finish()
        };
        let of = |number| Values {
            revision: revision(number),
            taken_at: Instant::ZERO,
            readings: vec![
                (0, Reading::Number(48.5)),
                (1, Reading::Text(Text::new("idle").unwrap())),
                (2, Reading::Number(7.0)),
                (3, Reading::Number(9.0)),
            ],
        };
        machine.handle_values(of(1));
        assert!(!page(&machine).contains("48.5"));
        let revision = revision(1);
        machine.handle_description(Description { revision, axes, actions, values });
        let text = page(&machine);
        let battery = "tautline_operator_machine_value{name=\"battery\",unit=\"V\"} 48.5\n";
        let task = "tautline_operator_machine_text{name=\"task\",text=\"idle\"} 1.0\n";
        assert!(text.contains(battery) && text.contains(task), "{text}");
        assert!(!text.contains("7.0") && !text.contains("9.0"), "{text}");
        machine.handle_values(of(2));
        assert!(!page(&machine).contains("48.5"), "of another machine");
    }
}
