import { Page } from '../../ui/page.tsx'

export function Backends() {
  return <Page title="Backends">{null}</Page>
}
