//! `zonemode=zbd`: what jobs do in zones, beside a model of fio's rules, beside fio itself, and on a device
//! that refuses every wrong command.

mod counts;
mod device;
mod jobs;
mod model;
mod oracle;
mod refusals;
mod together;
