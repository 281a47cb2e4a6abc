import type { Page } from 'playwright-core'
import type { Shop } from './shop.ts'

export interface Shot {
  readonly name: string
  readonly size?: readonly [width: number, height: number]
  readonly scheme?: 'light' | 'dark'
  /** After `/console`. */
  readonly path: string | ((shop: Shop) => string)
  /** The share of pixels that may differ from the file that is there: more where keys, addresses or durations are shown, which are new in each run. */
  readonly tolerance?: number
  /** What is done on the page first. */
  act?(page: Page): Promise<unknown>
}

const PHONE = [360, 760] as const
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

/** It is below the facts of a run, and the head of the page stays. */
async function showTimeline(page: Page): Promise<void> {
  await page.getByRole('list', { name: 'Requests, newest first' }).waitFor()
  await page.getByText(/^Timeline/).evaluate((heading) => {
    heading.style.scrollMarginTop = '150px'
    heading.scrollIntoView()
  })
}

/** A new server: only the guide. */
export const FIRST_RUN: readonly Shot[] = [
  {
    name: 'first-run',
    path: '',
    act: async (page) => {
      await page.getByRole('button', { name: 'Add the backend' }).click()
      await page.getByRole('button', { name: 'Create the agent' }).waitFor()
    },
  },
]

export const SHOTS: readonly Shot[] = [
  { name: 'overview', path: '' },
  { name: 'overview-dark', path: '', scheme: 'dark' },
  { name: 'inbox', path: ({ request }) => `/pending/${request}` },
  { name: 'inbox-phone', path: ({ request }) => `/pending/${request}`, size: PHONE },
  {
    name: 'approve',
    path: ({ request }) => `/pending/${request}`,
    act: async (page) => {
      await page.getByRole('button', { name: /^Approve less/ }).press('Enter')
      await page.getByRole('dialog').waitFor()
    },
  },
  { name: 'credentials', path: '/credentials' },
  { name: 'not-ended', path: ({ stuck }) => `/credentials/${stuck}?unended=true` },
  { name: 'run', path: ({ run }) => `/runs/${run}`, act: showTimeline },
  { name: 'agents', path: '/agents/claude-anna' },
  { name: 'agents-phone', path: '/agents/claude-anna', size: PHONE, scheme: 'dark' },
  {
    name: 'end-agent',
    path: '/agents/claude-anna',
    act: async (page) => {
      await page.getByRole('button', { name: /^End/ }).first().click()
      await page.getByRole('dialog').waitFor()
    },
  },
  { name: 'backends', path: '/backends' },
  {
    name: 'backend',
    path: '/backends/orders',
    act: async (page) => {
      await press(page, 'Try it')
      await page.getByText('It works from end to end').waitFor()
    },
    tolerance: 0.002,
  },
  { name: 'add-backend', path: '/backends?new=postgres' },
  { name: 'activity', path: '/activity', act: (page) => page.locator('canvas').first().waitFor() },
  { name: 'story', path: ({ stuck }) => `/activity?credential=${stuck}` },
  { name: 'download', path: '/activity?backend=warehouse', act: (page) => press(page, 'Download') },
  { name: 'policies', path: '/policies?name=ci-lint&scope=orders:shop:read' },
  { name: 'kinds', path: '/kinds/postgres' },
  { name: 'keys', path: '/keys', tolerance: 0.008 },
  { name: 'people', path: '/operators/ben@example.com' },
  { name: 'settings', path: '/settings?origin=set', tolerance: 0.004 },
  { name: 'account', path: '/me' },
  {
    name: 'palette',
    path: '/agents',
    act: async (page) => {
      await page.getByRole('row').first().waitFor()
      await page.keyboard.press('Control+k')
      await page.getByPlaceholder('Go, search or act…').fill('cl')
    },
  },
]
