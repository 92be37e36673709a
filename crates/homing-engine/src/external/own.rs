//! Whose task it is: to everybody else it is not there. Keeps P11.

use homing_model::{Kind, Reference};
use homing_store::Record;
use homing_store::store::Found;

use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// The task of this owner that a text names. Another's is told as one that never was, in the same words.
    pub(crate) async fn own(&self, reference: &str, owner: &str) -> Result<Record, Error> {
        let store = &self.inner.store;
        let id = match store.find_own(Reference::parse(reference), owner.to_owned()).await? {
            Found::One(id) => id,
            Found::Several(candidates) => {
                return Err(Error::Ambiguous { reference: reference.to_owned(), candidates });
            }
            // Whose it was is not known any more.
            Found::Expired(id) => return Err(Error::Expired(id)),
            Found::None => return Err(Error::Unknown(reference.to_owned())),
        };
        let record = store.get(id).await?.filter(|record| record.kind != Kind::Hook);
        record.ok_or_else(|| Error::Unknown(reference.to_owned()))
    }

    /// The same, if somebody else runs it.
    pub(super) async fn own_external(&self, reference: &str, owner: &str) -> Result<Record, Error> {
        let record = self.own(reference, owner).await?;
        match record.kind {
            Kind::External => Ok(record),
            Kind::Command | Kind::Hook => Err(Error::NotExternal(record.id)),
        }
    }
}
