//! A release of the operator of shops that owns other kinds.

use std::marker::PhantomData;

use okt::{Action, Application, Context, Failure, Resources, Watches};
use okt_tests::{Served, Shop, ShopState, ShopStateHandler, Shops, shop_state};

/// The kinds that a release owns.
pub(super) trait Owns: Send + Sync + 'static {
    fn watches(watches: Watches<Shop>) -> Watches<Shop>;
}

/// The operator of shops with other kinds.
pub(super) struct Release<O>(pub(super) Shops, pub(super) PhantomData<O>);

impl<O> Clone for Release<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<O> Default for Release<O> {
    fn default() -> Self {
        Self(Shops::default(), PhantomData)
    }
}

impl<O: Owns> Served for Release<O> {}

impl<O: Owns> ShopStateHandler for Release<O> {
    type Context = Action<Shop>;
    type Error = Failure;

    async fn opening(&self, _: &Action<Shop>) -> Result<shop_state::AfterOpening, Failure> {
        Ok(shop_state::AfterOpening::Next)
    }

    async fn open(&self, _: &Action<Shop>) -> Result<shop_state::AfterOpen, Failure> {
        Ok(shop_state::AfterOpen::Stay)
    }

    async fn closing(&self, _: &Action<Shop>) -> Result<shop_state::AfterClosing, Failure> {
        Ok(shop_state::AfterClosing::Next)
    }
}

impl<O: Owns> Application for Release<O> {
    type Resource = Shop;

    fn watches(watches: Watches<Shop>) -> Watches<Shop> {
        O::watches(watches)
    }

    async fn resources(&self, cx: &Context<Shop>, state: ShopState) -> Result<Resources, Failure> {
        self.0.resources(cx, state).await
    }
}
