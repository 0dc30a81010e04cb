//! The named scenarios in their quick form; `tautline lab links --scenario all` runs the full one.

use tautline_lab::experiment::{Row, Verdict};
use tautline_lab::sweeps::links::scenarios;
use tautline_transport::Config;

fn judge(name: &str) {
    for row in rows(name) {
        assert_ne!(row.verdict(), Verdict::Out, "{row:?}");
    }
}

/// Judges one row of a scenario in which another row's requirement is open.
fn judge_row(name: &str, quantity: &str) {
    let row = rows(name).into_iter().find(|row| row.quantity == quantity);
    let row = row.expect("a row of that quantity");
    assert_eq!(row.verdict(), Verdict::Within, "{row:?}");
}

fn rows(name: &str) -> Vec<Row> {
    let found = scenarios::all().into_iter().find(|scenario| scenario.name == name);
    let rows = found.expect("a scenario of that name").run(&Config::default(), 1, None, true);
    rows.expect("sessions that can be configured so")
}

#[test]
fn a_tenth_of_the_datagrams_lost_costs_one_unit_in_a_thousand() {
    judge("loss-10");
}

#[test]
fn a_far_peer_with_losses_hardly_freezes() {
    judge("far-loss-6");
}

#[test]
fn a_swinging_link_does_not_drag_the_other() {
    judge("swing");
}

#[test]
fn a_blackout_of_one_of_four_links_costs_at_most_one_deadline() {
    judge("blackout");
}
#[test]
fn at_thirty_percent_loss_at_most_one_percent_of_units_is_late() {
    judge("loss-30");
}

/// The requirement of 250 ms for the gap is open: for about 600 ms nothing is in time.
#[test]
fn two_seconds_at_a_tenth_of_the_rate_are_got_over() {
    judge_row("dip", "carried 3 s later, of what was before, the worst run");
}

#[test]
fn a_policer_is_found_as_a_rate() {
    judge("policer-4");
}

#[test]
fn a_cubic_flow_in_a_short_queue_leaves_a_quarter() {
    judge("cubic-32k");
}

#[test]
fn a_queue_of_a_megabyte_is_said_to_be_anothers() {
    judge("cubic-1m");
}

#[test]
fn thirty_percent_loss_in_both_directions_leaves_3_of_10_mbps() {
    judge("both-lose-30");
}

#[test]
fn an_l4s_queue_stays_short_and_full() {
    judge("l4s");
}
