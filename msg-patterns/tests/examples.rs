//! The examples run to their end.

#[path = "../examples/pubsub.rs"]
mod pubsub;
#[path = "../examples/pushpull.rs"]
mod pushpull;
#[path = "../examples/reqrep.rs"]
mod reqrep;

#[test]
fn the_example_of_pub_and_sub_ends_well() {
    pubsub::main().unwrap();
}

#[test]
fn the_example_of_push_and_pull_ends_well() {
    pushpull::main().unwrap();
}

#[test]
fn the_example_of_req_and_rep_ends_well() {
    reqrep::main().unwrap();
}
