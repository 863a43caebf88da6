//! Listening, connecting, accepting.

use fabric_core::{Addr, EpId, Error, ErrorKind, Event, Listener, ListenerId};

use crate::Bug;
use crate::endpoint::{At, Endpoint};
use crate::net::Net;
use crate::packet::Packet;

/// A host name and a port.
pub(crate) type Place = (String, u16);

/// Who listens at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    dom: u64,
    listener: ListenerId,
}

/// A connection attempt on its way to a listener.
#[derive(Debug)]
pub(crate) struct Syn {
    from: At,
    listener: ListenerId,
}

impl Syn {
    /// Who dials.
    pub(crate) fn from(&self) -> At {
        self.from
    }
}

const ANY: &str = "*";
const FREE_PORTS: std::ops::RangeInclusive<u16> = 49152..=65535;

impl Net {
    pub(crate) fn listen(&mut self, dom: u64, addr: &Addr) -> Result<Listener, Error> {
        self.check_usable(dom, addr)?;
        let port = self.pick_port(addr)?;
        let place = (addr.host().to_owned(), port);
        let id = ListenerId(self.fresh_id());
        self.places.insert(place.clone(), Owner { dom, listener: id });
        if let Some(dom) = self.doms.get_mut(&dom) {
            dom.listeners.insert(id, place);
        }
        Ok(Listener { id, addr: Addr::new("sim", addr.host(), Some(port)) })
    }

    pub(crate) fn unlisten(&mut self, dom: u64, listener: ListenerId) -> Result<(), Error> {
        let keeps_accepting = self.has(Bug::UnlistenKeepsAccepting);
        let place = self.doms.get_mut(&dom).and_then(|dom| match keeps_accepting {
            true => dom.listeners.get(&listener).cloned(),
            false => dom.listeners.remove(&listener),
        });
        let place = place.ok_or_else(|| {
            Error::misuse(format!("no listener {} here: it was closed before", listener.0))
        })?;
        if !keeps_accepting && !self.has(Bug::UnlistenKeepsAddress) {
            self.places.remove(&place);
        }
        Ok(())
    }

    pub(crate) fn connect(&mut self, dom: u64, addr: &Addr) -> Result<EpId, Error> {
        self.check_usable(dom, addr)?;
        let port = addr.port().filter(|&port| port != 0 && addr.host() != ANY);
        let port = port.ok_or_else(|| {
            let text = format!("{addr} is no peer's address: connect to sim://name:port");
            Error::new(ErrorKind::Address, text)
        })?;
        let at = At { dom, ep: EpId(self.fresh_id()) };
        self.start_dialing(at, addr);
        match self.find_listener(addr.host(), port) {
            Some(owner) if !self.strikes(self.options.faults.refused_per_mille) => {
                self.knock(owner, at);
            }
            _ => self.refuse(at),
        }
        Ok(at.ep)
    }

    /// Answers the connection attempts that have arrived at `dom`.
    pub(crate) fn answer_syns(&mut self, dom: u64) {
        while let Some(syn) = self.next_syn(dom) {
            self.accept(dom, &syn);
        }
    }

    /// Ends the attempts of `dom` that took too long.
    pub(crate) fn expire_dialing(&mut self, dom: u64) {
        let now = self.now();
        let Some(state) = self.doms.get(&dom) else { return };
        let late: Vec<EpId> =
            state.dialing.iter().filter(|(_, due)| **due <= now).map(|(ep, _)| *ep).collect();
        for ep in late {
            let why = Error::new(ErrorKind::TimedOut, "the peer did not answer in time");
            self.finish(At { dom, ep }, why);
        }
    }

    pub(crate) fn check_usable(&self, dom: u64, addr: &Addr) -> Result<(), Error> {
        if addr.scheme() != "sim" {
            let text = format!("{addr} is no address of this fabric: use sim://name:port");
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        if self.doms.get(&dom).is_none_or(|dom| dom.dead) {
            return Err(Error::new(ErrorKind::Host, "this simulated host was killed"));
        }
        Ok(())
    }

    fn pick_port(&mut self, addr: &Addr) -> Result<u16, Error> {
        let (host, port) = (addr.host(), addr.port().unwrap_or(0));
        let free = |port: &u16| self.is_free(host, *port);
        let picked = match port {
            0 => FREE_PORTS.into_iter().find(free),
            port => Some(port).filter(free),
        };
        picked.ok_or_else(|| {
            let text =
                format!("somebody listens at {addr}: take another port, or 0 for a free one");
            Error::new(ErrorKind::AddrInUse, text)
        })
    }

    fn is_free(&self, host: &str, port: u16) -> bool {
        if self.has(Bug::SharesAddress) {
            return true;
        }
        let clashes =
            |(name, at): &Place| *at == port && (host == ANY || name == ANY || name == host);
        !self.places.keys().any(clashes)
    }

    fn find_listener(&self, host: &str, port: u16) -> Option<Owner> {
        let at = |name: &str| self.places.get(&(name.to_owned(), port));
        at(host).or_else(|| at(ANY)).copied()
    }

    fn start_dialing(&mut self, at: At, addr: &Addr) {
        let deadline = self.now() + self.options.limits.connect_timeout;
        if let Some(dom) = self.doms.get_mut(&at.dom) {
            dom.eps.insert(at.ep, Endpoint::new(None, addr.clone()));
            dom.dialing.insert(at.ep, deadline);
        }
    }

    fn knock(&mut self, owner: Owner, from: At) {
        let due = self.draw_due(owner.dom);
        if let Some(dom) = self.doms.get_mut(&owner.dom) {
            dom.syns.push_back((due, Syn { from, listener: owner.listener }));
            dom.bell.ring();
        }
    }

    fn refuse(&mut self, at: At) {
        if !self.has(Bug::NeverRefuses) {
            self.dismiss(at, ErrorKind::Refused, "nobody listens at this address");
        }
    }

    fn next_syn(&mut self, dom: u64) -> Option<Syn> {
        let (due, syn) = self.doms.get(&dom)?.syns.front()?;
        let arrives = self.is_due(dom, *due) && !self.cut.contains(&(syn.from.dom, dom));
        if !arrives {
            return None;
        }
        self.doms.get_mut(&dom)?.syns.pop_front().map(|(_, syn)| syn)
    }

    fn accept(&mut self, dom: u64, syn: &Syn) {
        let listens =
            self.doms.get(&dom).is_some_and(|dom| dom.listeners.contains_key(&syn.listener));
        // Whoever dialed may have given up meanwhile.
        if self.ep(syn.from).is_none() {
            return;
        }
        if !listens {
            self.refuse(syn.from);
            return;
        }
        let at = At { dom, ep: EpId(self.fresh_id()) };
        let peer = Addr::new("sim", &format!("domain-{}", syn.from.dom), None);
        self.join(at, syn.from, peer.clone());
        self.report(dom, Event::Accepted { ep: at.ep, listener: syn.listener, peer });
    }

    fn join(&mut self, at: At, from: At, peer_addr: Addr) {
        if let Some(dom) = self.doms.get_mut(&at.dom) {
            dom.eps.insert(at.ep, Endpoint::new(Some(from), peer_addr));
        }
        if let Some(dialer) = self.ep_mut(from) {
            dialer.peer = Some(at);
        }
        self.dispatch(from, Packet::Hello);
    }
}
