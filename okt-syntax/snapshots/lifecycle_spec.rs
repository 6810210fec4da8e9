// What the macros write; renewed by `UPDATE_EXPECT=1 cargo test -p okt-syntax`.

#[automatically_derived]
impl<'a, T: Clone> crate::runtime::LifecycleSpec for Named<'a, T> {
    type State = Life;
    fn lifecycle(&self) -> &runtime::Desired<Life> {
        &self.r#type
    }
    fn forget_lifecycle(&mut self) {
        self.r#type = ::core::default::Default::default();
    }
}
#[automatically_derived]
impl crate::runtime::LifecycleSpec for Unnamed {
    type State = Life;
    fn lifecycle(&self) -> &crate::runtime::Desired<Life> {
        &self.1
    }
    fn forget_lifecycle(&mut self) {
        self.1 = ::core::default::Default::default();
    }
}
#[automatically_derived]
impl crate::runtime::LifecycleSpec for Without {
    type State = crate::runtime::NoLifecycle;
    fn lifecycle(&self) -> &crate::runtime::Desired<Self::State> {
        <Self::State>::desired()
    }
    fn forget_lifecycle(&mut self) {}
}
