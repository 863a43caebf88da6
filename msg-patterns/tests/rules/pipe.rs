//! PUSH and PULL.

use msg_patterns::{ErrorKind, Pull, Push};

use crate::support::LONG;

rules! {
    fn pipe_02_push_round_robin(net) {
        let push = Push::new(net.context()).unwrap();
        let pulls: Vec<Pull> = (0..5)
            .map(|_| {
                let pull = Pull::new(net.context()).unwrap();
                let addr = pull.bind(net.any()).unwrap();
                push.connect(&addr.to_string()).unwrap();
                pull
            })
            .collect();
        for i in 0..5_u8 {
            push.send(&[i]).unwrap();
        }
        let mut got: Vec<u8> =
            pulls.iter().map(|pull| pull.recv_timeout(LONG).unwrap().first()[0]).collect();
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2, 3, 4]);
    }

    fn pipe_04_push_blocks_without_peer(net) {
        let push = Push::new(net.context()).unwrap();
        push.bind(net.any()).unwrap();
        let refused = push.try_send("kept").unwrap_err();
        assert_eq!((refused.kind(), refused.message.first()), (ErrorKind::NoPeer, &"kept".into()));
    }
}
