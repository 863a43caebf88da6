//! A server and its clients as tasks of tokio.
//!
//! Run with `cargo run -p msg-patterns --example tokio --features tokio`; without the feature it does
//! the same, with a thread of the context's that drives the sockets.

use std::error::Error;
use std::time::Duration;

use msg_patterns::{Context, Rep, Req};
use tokio::time::timeout;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve_and_ask())
}

async fn serve_and_ask() -> Result<(), Box<dyn Error>> {
    let context = Context::new();
    let rep = Rep::new(&context)?;
    let addr = rep.bind("tcp://127.0.0.1:0")?.to_string();
    let server = tokio::spawn({
        let rep = rep.clone();
        async move {
            while let Ok(request) = rep.next_request_async().await {
                let answer = format!("{:?}, too", request.message().first());
                // The asker may have gone.
                drop(request.reply(answer));
            }
        }
    });

    let req = Req::new(&context)?;
    req.connect(&addr)?;
    for name in ["hello", "good bye"] {
        // Time limits are the executor's; a request that is given up is cancelled.
        let reply = timeout(Duration::from_secs(10), req.request_async(name)).await??;
        println!("{:?}", reply.first());
    }
    req.close_async().await;
    rep.close_async().await;
    server.await?;
    Ok(())
}
