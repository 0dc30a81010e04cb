use crate::adapter::Adapter;
use crate::database::Database;
use crate::declared::Declared;
use crate::mistake::Mistake;
use crate::written::{Map, Settings};
use resolver::Resolver;

mod receives;
mod resolver;
mod sends;

/// A map of controls to signals that are sent, and of signals that are received to a machine's
/// state.
#[derive(Debug)]
pub struct Mapping {
    map: Map,
    mistakes: Vec<Mistake>,
}

impl Mapping {
    /// Reads the text of a map. Its mistakes are reported together with those that only the DBC
    /// shows.
    pub fn parse(text: &str) -> Self {
        let mut mistakes = Vec::new();
        let map = Map::parse(text, &mut mistakes);
        Self { map, mistakes }
    }

    /// Returns the settings of the process in the map.
    pub fn settings(&self) -> &Settings {
        &self.map.settings
    }

    /// Connects the map with the messages of a DBC.
    ///
    /// # Errors
    /// All mistakes of both, in the order of the map's lines.
    pub fn resolve(self, database: Result<&Database, Mistake>) -> Result<Adapter, Vec<Mistake>> {
        let Self { map, mut mistakes } = self;
        let database = match database {
            Ok(database) => database,
            Err(mistake) => {
                mistakes.insert(0, mistake);
                return Err(mistakes);
            }
        };
        let declared = Declared::of(&map, &mut mistakes);
        let mut resolver = Resolver { database, declared: &declared, mistakes };
        let outgoing = resolver.sends(&map.sends);
        let incoming = resolver.receives(&map.receives);
        resolver.check_use(&map, &outgoing, &incoming);
        let mut mistakes = resolver.mistakes;
        mistakes.sort();
        match mistakes.is_empty() {
            true => Ok(Adapter::new(declared.items, outgoing, incoming)),
            false => Err(mistakes),
        }
    }
}

#[cfg(test)]
mod tests;
