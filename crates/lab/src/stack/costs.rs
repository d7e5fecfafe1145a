//! What work costs the host's CPU: a preset's name, or a table that overrides a preset's costs one by one. The resolved
//! stack has every cost, if any was asked for.

use super::place::StackError;
use super::reader::{Field, Section};
use super::units::did_you_mean;

/// A key of a table of costs, and the cost it sets.
pub(super) type Cost<C> = (&'static str, fn(&mut C) -> &mut u64);

/// The costs of one kind of work.
pub(super) struct CostTable<C: 'static> {
    /// Where they stand, such as "ftl.cpu".
    pub(super) path: &'static str,
    /// Names of presets.
    pub(super) presets: &'static [&'static str],
    pub(super) preset: fn(&str) -> Option<C>,
    pub(super) costs: &'static [Cost<C>],
    /// The largest cost, 10 s.
    pub(super) ns_max: u64,
}

/// Costs that a stack asks for.
pub(super) struct AskedCosts<C> {
    /// The preset that they begin with.
    pub(super) preset: String,
    pub(super) costs: C,
}

impl<C> CostTable<C> {
    /// The key `cpu` of a section; nothing if it is not there. `also` reads what a table has beside costs.
    pub(super) fn read(
        &self,
        section: &mut Section<'_>,
        also: impl FnOnce(&mut Section<'_>) -> Result<(), StackError>,
    ) -> Result<Option<AskedCosts<C>>, StackError> {
        if section.node("cpu").is_none() {
            return Ok(None);
        }
        if section.holds_table("cpu") {
            return self.read_table(section.section("cpu", self.path)?, also).map(Some);
        }
        let preset: String = section.unwritten("cpu")?.unwrap_or_default();
        let costs = self.named(&preset).map_err(|message| section.reject("cpu", message))?;
        Ok(Some(AskedCosts { preset, costs }))
    }

    /// A preset with overrides; without a preset, everything else is free.
    fn read_table(
        &self,
        mut table: Section<'_>,
        also: impl FnOnce(&mut Section<'_>) -> Result<(), StackError>,
    ) -> Result<AskedCosts<C>, StackError> {
        let preset = table.or("preset", "none".to_owned())?;
        let mut costs = self.named(&preset).map_err(|message| table.reject("preset", message))?;
        also(&mut table)?;
        for (key, cost) in self.costs {
            if let Some(value) = table.optional(key)? {
                table.check(key, value <= self.ns_max, "must be at most 10,000,000,000 (10 s)")?;
                *cost(&mut costs) = value;
            }
        }
        table.close()?;
        Ok(AskedCosts { preset, costs })
    }

    /// Writes costs into the resolved stack; `also` stands between the preset and them.
    pub(super) fn write(&self, section: &mut Section<'_>, asked: &mut AskedCosts<C>, also: &str) {
        let show = |(key, cost): &Cost<C>| format!(", {key} = {}", cost(&mut asked.costs));
        let costs: String = self.costs.iter().map(show).collect();
        section.write("cpu", &format!("{{ preset = {}{also}{costs} }}", asked.preset.show()));
    }

    fn named(&self, name: &str) -> Result<C, String> {
        (self.preset)(name).ok_or_else(|| {
            let hint = did_you_mean(name, self.presets.iter().copied());
            let expected = self.presets.join(" | ");
            format!("expected {expected}, found {}{hint}", name.to_owned().show())
        })
    }
}
