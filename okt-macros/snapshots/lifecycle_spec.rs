// What the macros write for ui-tests/cases/pass/lifecycle_spec.rs; renewed by `UPDATE_EXPECT=1 cargo test -p okt-macros`.

#[automatically_derived]
impl<'a, T: Clone> crate::runtime::LifecycleSpec for Named<'a, T> {
    type State = Life;
    fn lifecycle(&self) -> &runtime::Desired<Life> {
        &self.r#type
    }
    fn lifecycle_mut(&mut self) -> &mut runtime::Desired<Life> {
        &mut self.r#type
    }
}
#[automatically_derived]
impl crate::runtime::LifecycleSpec for Unnamed {
    type State = Life;
    fn lifecycle(&self) -> &crate::runtime::Desired<Life> {
        &self.1
    }
    fn lifecycle_mut(&mut self) -> &mut crate::runtime::Desired<Life> {
        &mut self.1
    }
}
