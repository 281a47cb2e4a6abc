/** A page of the console, and how one sees that it can be used. */
export interface Room {
  readonly path: string
  /** Its `h1`. */
  readonly heading: string
  /** A selector of what is there once its first rows, or its contents, are. */
  readonly content: string
}

const FIRST_ROW = '[role="grid"] [id^="row-"]'

/** In the order of the frame. */
export const ROOMS: readonly Room[] = [
  { path: '/console', heading: 'Overview', content: 'section[aria-label="Now"]' },
  { path: '/console/pending', heading: 'Inbox', content: FIRST_ROW },
  { path: '/console/credentials', heading: 'Credentials', content: FIRST_ROW },
  { path: '/console/agents', heading: 'Agents', content: FIRST_ROW },
  { path: '/console/backends', heading: 'Backends', content: 'section[aria-labelledby^="kind-"]' },
  { path: '/console/activity', heading: 'Activity', content: FIRST_ROW },
  { path: '/console/policies', heading: 'Policies', content: FIRST_ROW },
  { path: '/console/kinds', heading: 'Kinds and plugins', content: FIRST_ROW },
  { path: '/console/keys', heading: 'Keys', content: FIRST_ROW },
  { path: '/console/operators', heading: 'People', content: FIRST_ROW },
  { path: '/console/settings', heading: 'Settings', content: 'tbody tr' },
]

/** The files of the console without what a room reads: the page that somebody gets who is not logged in. */
export const STATIC: Room = { path: '/console', heading: 'Log in', content: 'main button' }
