/// The subject of a record: a channel of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Topic {
    /// The begin or end of a part of a drive, or the deletion of old drives.
    Drive,
    /// A transition of the guard to another mode or cause.
    Transition,
    /// One step of the guard around a stop, where each step is recorded.
    Step,
    /// One step of the guard away from stops, where only some steps are recorded.
    Sample,
    /// The complete state of the guard before the next step, from which a replay may begin.
    Snapshot,
    /// A fact that other processes report and the guard does not have.
    Fact(Fact),
    /// A signature over the preceding records.
    Seal,
}

/// A diagnostics subject outside the guard, reported by other processes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fact {
    /// The vehicle: identification number, name and software.
    Vehicle,
    /// The person who drives: key, name and validity of the certificate.
    Person,
    /// The links: delays, bitrates and losses.
    Network,
    /// Values specific to the machine, and its fault memory.
    Machine,
    /// The vehicle's computer.
    System,
}

impl Fact {
    /// All subjects of facts.
    pub const ALL: [Self; 5] =
        [Self::Vehicle, Self::Person, Self::Network, Self::Machine, Self::System];
}

impl Topic {
    /// All topics in the order of their channels' numbers, from 1.
    pub const ALL: [Self; 11] = [
        Self::Drive,
        Self::Transition,
        Self::Step,
        Self::Sample,
        Self::Snapshot,
        Self::Fact(Fact::Vehicle),
        Self::Fact(Fact::Person),
        Self::Fact(Fact::Network),
        Self::Fact(Fact::Machine),
        Self::Fact(Fact::System),
        Self::Seal,
    ];

    /// Returns the name of the topic's channel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drive => "/drive",
            Self::Transition => "/guard/transition",
            Self::Step => "/guard/step",
            Self::Sample => "/guard/sample",
            Self::Snapshot => "/guard/snapshot",
            Self::Fact(Fact::Vehicle) => "/vehicle",
            Self::Fact(Fact::Person) => "/person",
            Self::Fact(Fact::Network) => "/network",
            Self::Fact(Fact::Machine) => "/machine",
            Self::Fact(Fact::System) => "/system",
            Self::Seal => "/seal",
        }
    }

    /// Returns the topic whose channel has this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.name() == name)
    }

    /// Returns the number of the topic's channel, from 1, which its schema has too.
    pub(crate) fn channel(self) -> u16 {
        let place = Self::ALL.iter().position(|topic| *topic == self);
        1 + place.expect("all topics are listed") as u16
    }

    /// Returns the name and the text of the JSON schema.
    pub(crate) const fn schema(self) -> (&'static str, &'static str) {
        match self {
            Self::Drive => ("tautline.Drive", include_str!("schema/drive.json")),
            Self::Transition | Self::Step | Self::Sample => {
                ("tautline.Step", include_str!("schema/step.json"))
            }
            Self::Snapshot => ("tautline.Snapshot", include_str!("schema/snapshot.json")),
            Self::Fact(_) => ("tautline.Fact", include_str!("schema/fact.json")),
            Self::Seal => ("tautline.Seal", include_str!("schema/seal.json")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_has_a_name_of_its_own_and_a_schema_of_an_object() {
        for (place, topic) in Topic::ALL.into_iter().enumerate() {
            assert_eq!(Topic::from_name(topic.name()), Some(topic));
            assert_eq!(usize::from(topic.channel()), place + 1);
            let schema: serde_json::Value = serde_json::from_str(topic.schema().1).unwrap();
            assert_eq!(schema["type"], "object", "{topic:?}");
        }
        for fact in Fact::ALL {
            assert!(Topic::ALL.contains(&Topic::Fact(fact)));
        }
    }
}
