import { Page } from '../../ui/page.tsx'

export function Policies() {
  return <Page title="Policies">{null}</Page>
}
