//! Three steering computers as real processes: the leader is killed, suspended and cut off.

use std::process::Command;

use crate::tries::tried;

#[test]
fn after_any_leader_fault_one_other_process_acts() {
    tried(|| {
        // Slow heartbeats: a busy machine must not look like a fault of the leader.
        let mut tautline = Command::new(env!("CARGO_BIN_EXE_tautline"));
        tautline.args(["lab", "leader", "--heartbeat-ms", "30", "--rounds", "1"]);
        let output = tautline.env_remove("TAUTLINE_CONFIG").output().unwrap();
        let words = String::from_utf8_lossy(&output.stdout);
        // The command fails if an act follows one of a later leader, or if no member takes over.
        assert!(output.status.success(), "{words}{}", String::from_utf8_lossy(&output.stderr));
        for fault in ["killed", "stopped", "cut off"] {
            let line = words.lines().find(|line| line.starts_with(fault));
            let line = line.unwrap_or_else(|| panic!("no failover for {fault}: {words}"));
            let times =
                line[fault.len()..].split_whitespace().map(|time| time.parse::<f64>().unwrap());
            let times: Vec<f64> = times.collect();
            assert!(times.len() == 3 && times.iter().all(|time| *time > 0.0), "{line}");
        }
        assert!(words.contains("after one of a later leader: 0"), "{words}");
    });
}
