//! `tautline end` with a lying switchboard: it believes only the vehicle's own signature to this
//! order.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tautline_message::{Control, Order};
use tautline_net::control::Listener;
use tautline_transport::crypto::Identity;
use tautline_transport::order::SignedOrder;
use tautline_transport::order::answer::{Answer, Outcome};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::setup::tautline;

#[test]
fn a_signed_answer_that_the_machine_is_held_exits_with_0() {
    let (told, status) = end(|order| {
        [Outcome::Begun, Outcome::Held].map(|outcome| word(ROVER, order, outcome)).to_vec()
    });
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("rover: as you like\n"), "{told}");
    assert!(
        told.contains("has begun; epoch 7\n") && told.contains("holds it; epoch 7\n"),
        "{told}"
    );
}

#[test]
fn a_signed_refusal_exits_with_3_and_names_its_reason() {
    for outcome in [Outcome::Stranger, Outcome::Expired, Outcome::Early, Outcome::Repeated] {
        let (told, status) = end(|order| vec![word(ROVER, order, outcome)]);
        assert_eq!(status, Some(3), "{told}");
        assert!(told.contains(&format!("by its own signature: {outcome}")), "{told}");
    }
}

#[test]
fn nothing_that_a_switchboard_makes_of_answers_is_believed() {
    let lies = |order: &SignedOrder| {
        let held = Answer { outcome: Outcome::Held, ..answer(ROVER, order) };
        let mut broken = held.sign(&identity(ROVER)).as_bytes().to_vec();
        broken[100] ^= 1;
        // In the vehicle's name with another key; of another vehicle; to an earlier order; to
        // another supervisor.
        let mut forged = held.sign(&identity(ROVER)).as_bytes().to_vec();
        let [own, others] = [ROVER, MULE].map(|seed| {
            let (vehicle, own) = (identity(seed).public(), identity(seed));
            Answer { vehicle, ..held }.sign(&own).as_bytes().to_vec()
        });
        forged[82..].copy_from_slice(&others[82..]);
        let before = Answer { number: held.number - 1, ..held }.sign(&identity(ROVER));
        let elsewhere =
            Answer { supervisor: identity(BOARD).public(), ..held }.sign(&identity(ROVER));
        let [before, elsewhere] = [before, elsewhere].map(|signed| signed.as_bytes().to_vec());
        let cut = own[..145].to_vec();
        let order = order.as_bytes().to_vec();
        vec![broken, forged, others, before, elsewhere, cut, vec![], order]
    };
    let (told, status) = end(lies);
    assert_eq!(status, Some(5), "{told}");
    assert!(!told.contains("by its own signature"), "{told}");
    assert!(told.contains("is left out: "), "{told}");
    // One true answer among them counts, but its end is not reported yet.
    let (told, status) = end(|order| {
        let mut words = lies(order);
        words.insert(3, word(ROVER, order, Outcome::Begun));
        words
    });
    assert_eq!(status, Some(4), "{told}");
    assert!(told.contains("has begun; epoch 7\n") && !told.contains("holds it"), "{told}");
}

/// Runs `tautline end` with a switchboard that delivers these answers to the order and disconnects;
/// returns its output and exit code.
fn end(answers: impl Fn(&SignedOrder) -> Vec<Vec<u8>>) -> (String, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Runtime::new().expect("threads").block_on(async {
        let own = identity(BOARD);
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), &own).await.expect("a port");
        let at = listener.local().to_string();
        let command = supervisor(folder.path(), &at);
        let switchboard = async {
            let incoming = listener.accept().await.expect("it comes");
            let mut connection = incoming.handshake().await.expect("it proves its key");
            let frame = connection.recv().await.expect("it speaks").expect("a frame");
            let Ok(Control::Order(Order::End { name, signed })) = Control::decode(&frame) else {
                panic!("no order to end")
            };
            assert_eq!(name, "rover");
            let order = SignedOrder::read(&signed).expect("signed");
            let order = order.sign(&identity(EVA));
            let text =
                Control::OrderPart { bytes: b"rover: as you like\n".to_vec(), is_last: true };
            connection.send(&text.encode()).await.expect("it listens");
            for signed in answers(&order) {
                let frame = Control::Answered { signed }.encode();
                connection.send(&frame).await.expect("it listens");
            }
            // The command has read everything, or has given up, when it disconnects.
            let (mut sender, _receiver) = connection.split();
            sender.close().await;
        };
        let (output, ()) = tokio::join!(command, switchboard);
        output
    });
    let told = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&told).into_owned(), output.status.code())
}

async fn supervisor(folder: &Path, switchboard: &str) -> Output {
    let key = folder.join("eva.key");
    std::fs::write(&key, identity(EVA).to_text().as_bytes()).expect("room");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&key, mode).expect("it is ours");
    let [board, rover] = [BOARD, ROVER].map(|seed| identity(seed).public().to_string());
    let mut command = tautline(folder);
    command.args(["end", "rover", "--key", "eva.key", "--switchboard", switchboard]);
    command.args(["--switchboard-key", &board, "--vehicle-key", &rover]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("our own binary");
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output());
    let ended = timeout(Duration::from_secs(30), ended).await.expect("it ends");
    ended.expect("no panic").expect("it ran")
}

fn word(vehicle: u8, order: &SignedOrder, outcome: Outcome) -> Vec<u8> {
    let answer = Answer { outcome, ..answer(vehicle, order) };
    answer.sign(&identity(vehicle)).as_bytes().to_vec()
}

fn answer(vehicle: u8, order: &SignedOrder) -> Answer {
    let order = SignedOrder::read(order.as_bytes()).expect("signed");
    let (vehicle, supervisor) = (identity(vehicle).public(), order.supervisor);
    Answer { vehicle, supervisor, number: order.number(), epoch: 7, outcome: Outcome::Begun }
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

const BOARD: u8 = 1;
const ROVER: u8 = 2;
const EVA: u8 = 6;
const MULE: u8 = 7;
