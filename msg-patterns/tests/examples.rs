//! The examples run to their end.

#[path = "../examples/epoll.rs"]
mod epoll;
#[path = "../examples/forwarder.rs"]
mod forwarder;
#[path = "../examples/mio.rs"]
mod mio_loop;
#[path = "../examples/pubsub.rs"]
mod pubsub;
#[path = "../examples/pushpull.rs"]
mod pushpull;
#[path = "../examples/reqrep.rs"]
mod reqrep;
#[path = "../examples/router.rs"]
mod router;
#[path = "../examples/tokio.rs"]
mod tokio_tasks;

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

#[test]
fn the_example_of_a_router_with_workers_ends_well() {
    router::main().unwrap();
}

#[test]
fn the_example_of_a_forwarder_ends_well() {
    forwarder::main().unwrap();
}

#[test]
fn the_example_with_epoll_ends_well() {
    epoll::main().unwrap();
}

#[test]
fn the_example_with_mio_ends_well() {
    mio_loop::main().unwrap();
}

#[test]
fn the_example_with_tokio_ends_well() {
    tokio_tasks::main().unwrap();
}
