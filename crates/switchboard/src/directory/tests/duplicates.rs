use tautline_message::Held;

use super::*;

const TWO_ROVERS: &str = "refused NameTaken, vehicle rover is at 192.0.2.1:9000, and another machine uses its key at \
                          192.0.2.3:9000: was a folder or card copied? The first one stays, the other is refused";

#[test]
fn of_two_machines_with_one_key_the_first_stays_connected() {
    let [first, second] = [1, 3].map(|id| format!("{id}: {TWO_ROVERS}"));
    play(&driving(&[
        (Call(3, ROVER), &[]),
        (Vehicle(3, "rover", "10.0.0.9:7001"), &[]),
        // The first answers a ping, so there is no new introduction.
        (Wait(100), &[&first, &second, "3: closed"]),
        (Wait(10_000), &[]),
        (List(2), &["2: mule away, rover taken"]),
        // After the first has gone, the second is the vehicle.
        (Gone(1), &[]),
        (Call(4, ROVER), &[]),
        (
            Vehicle(4, "rover", "10.0.0.9:7001"),
            &["2: meet rover at 10.0.0.9:7001, lease B", "4: meet anna at 10.0.0.2:8000, lease B"],
        ),
    ]));
    let mut scene = Scene::new();
    for (step, _) in DRIVING {
        scene.act(*step);
    }
    for step in [Call(3, ROVER), Vehicle(3, "rover", "10.0.0.9:7001"), Wait(4_000)] {
        scene.act(step);
    }
    let who = scene.directory.who(scene.now);
    let line = "connected from 192.0.2.1:9000; a connection with the same key from 192.0.2.3:9000 was refused 4 s ago";
    assert!(who.contains(line), "{who}");
    scene.act(Wait(60_000));
    assert!(!scene.directory.who(scene.now).contains("same key"), "it has not come again");
}

#[test]
fn of_two_operators_with_one_key_the_first_keeps_its_vehicle() {
    let text = |id, duplicate| {
        format!(
            "{id}: refused NameTaken, operator anna is at 192.0.2.2:9000, and another machine uses its key at \
             192.0.2.{duplicate}:9000: was a folder or card copied? The first one stays, the other is refused"
        )
    };
    let [first, second, third] = [text(2, 3), text(3, 3), text(4, 4)];
    play(&driving(&[
        (Call(3, ANNA), &[]),
        (Operator(3, "anna", "10.0.0.2:8001"), &[]),
        // A third is refused at once.
        (Call(4, ANNA), &[]),
        (Operator(4, "anna", "10.0.0.2:8001"), &[&text(2, 4), &third, "4: closed"]),
        (Wait(100), &[&first, &second, "3: closed"]),
        (List(2), &["2: mule away, rover taken"]),
    ]));
}

/// A process that loses its connection on one link and returns on another holds the lease, so it
/// need not wait.
#[test]
fn a_process_that_names_the_lease_replaces_its_own_connection() {
    let mut scene = Scene::new();
    for (step, _) in DRIVING {
        scene.act(*step);
    }
    scene.outputs();
    let lease = scene.leases.first().copied();
    scene.act(Call(3, ROVER));
    let peer_key = *Identity::from_seed(&[ANNA; 32]).public().as_bytes();
    scene.say(
        3,
        Control::RegisterVehicle {
            name: "rover".to_owned(),
            addresses: vec!["10.0.0.1:7000".to_owned()],
            versions: None,
            relays: false,
            candidates: vec![],
            held: Some(Held { lease, epoch: 1, peer_key }),
            place: None,
        },
    );
    let ended = "1: refused NameTaken, this process has connected again: its old connection ends";
    assert_eq!(scene.outputs(), [ended, "1: closed"]);
    scene.act(Gone(1));
    scene.act(List(2));
    assert_eq!(scene.outputs(), ["2: mule away, rover taken"]);
}
