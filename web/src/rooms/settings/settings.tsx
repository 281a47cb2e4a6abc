import { Page } from '../../ui/page.tsx'

export function SettingsRoom() {
  return <Page title="SettingsRoom">{null}</Page>
}
