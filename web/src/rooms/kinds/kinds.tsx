import { Page } from '../../ui/page.tsx'

export function Kinds() {
  return <Page title="Kinds">{null}</Page>
}
