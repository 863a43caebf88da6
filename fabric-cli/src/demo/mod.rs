pub(crate) fn run(
    _args: &crate::args::DemoArgs,
    _global: &crate::args::Global,
) -> Result<(), crate::exit::Failure> {
    Ok(())
}
