import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { eventually } from './app.ts'
import { LONG } from './long.ts'

/** One way to use a page: the stories of `test/browser` are told once for each. */
export interface Hands {
  readonly name: string
  /** Activates a button or a link. */
  press(control: Locator): Promise<void>
  /** Enters this text in place of what a field has. */
  write(field: Locator, text: string): Promise<void>
  /** Chooses an option of a native select by its label. */
  choose(field: Locator, label: string): Promise<void>
  /** Ticks a box, or takes its tick off. */
  tick(box: Locator): Promise<void>
}

/** More stops than any page of the console has. */
const MOST_STOPS = 250
const IS_IN_DIALOG = `document.querySelector('[role=dialog]')?.contains(document.activeElement) ?? true`
const DOCUMENT_POSITION_FOLLOWING = 4
const hasFocus = (control: Locator): Promise<boolean> =>
  control.evaluate((element) => element === element.ownerDocument.activeElement)
/** Whether it comes after what has the focus. */
const isBelow = async (control: Locator): Promise<boolean> => {
  const position = await control.evaluate((element) =>
    element.ownerDocument.activeElement?.compareDocumentPosition(element),
  )
  return ((position ?? 0) & DOCUMENT_POSITION_FOLLOWING) !== 0
}

/** Goes to a control by the Tab key alone, in the direction in which it lies. */
export async function tabTo(control: Locator): Promise<void> {
  await control.waitFor()
  // A dialog takes the focus once it is drawn.
  await eventually(async () => expect(await control.page().evaluate(IS_IN_DIALOG)).toBe(true))
  const { keyboard } = control.page()
  const key = (await isBelow(control)) ? 'Tab' : 'Shift+Tab'
  for (let stop = 0; stop < MOST_STOPS; stop += 1) {
    if (await hasFocus(control)) return
    await keyboard.press(key)
  }
  throw new Error(`The Tab key does not come to ${control}.`)
}

export const MOUSE: Hands = {
  name: 'the mouse',
  press: (control) => control.click(),
  async write(field, text) {
    await field.click({ clickCount: 3 })
    await field.page().keyboard.press('Control+A')
    await field.page().keyboard.insertText(text)
  },
  async choose(field, label) {
    await field.selectOption({ label })
  },
  tick: (box) => box.click(),
}

export const KEYBOARD: Hands = {
  name: 'the keyboard alone',
  async press(control) {
    await tabTo(control)
    await control.page().keyboard.press('Enter')
  },
  async write(field, text) {
    await tabTo(field)
    await field.page().keyboard.press('Control+A')
    await field.page().keyboard.type(text)
  },
  async choose(field, label) {
    await tabTo(field)
    // A native select goes to what one types.
    await field.page().keyboard.type(label)
  },
  async tick(box) {
    await tabTo(box)
    await box.page().keyboard.press('Space')
  },
}

/** Searches the palette for this, and takes what it finds first. */
export async function byPalette(page: Page, text: string): Promise<void> {
  await page.keyboard.press('Control+k')
  await page.getByPlaceholder('Go, search or act…').waitFor()
  await page.keyboard.type(text)
  await page.keyboard.press('Enter')
}

/** Who performs a story: the long tests have both, the short ones the one that is named. */
export const handsOf = (short: typeof MOUSE): readonly (typeof MOUSE)[] =>
  LONG ? [MOUSE, KEYBOARD] : [short]
