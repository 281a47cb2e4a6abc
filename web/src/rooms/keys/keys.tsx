import { Page } from '../../ui/page.tsx'

export function KeysRoom() {
  return <Page title="KeysRoom">{null}</Page>
}
