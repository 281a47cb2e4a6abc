/**
 * Every address of the console. One for each object, with the nouns and ids of the command and the interface. They never change:
 * paths.test.ts lists them all.
 */
const part = encodeURIComponent
/** The query of an address, without what is empty. */
export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const text = new URLSearchParams(given as [string, string][]).toString()
  return text === '' ? path : `${path}?${text}`
}

export const ROOT = '/console'
export const paths = {
  overview: () => ROOT,
  inbox: () => `${ROOT}/pending`,
  request: (id: string) => `${ROOT}/pending/${part(id)}`,
  credentials: (
    filter: { agent?: string; backend?: string; run?: string; status?: string; unended?: string } = {},
  ) => withQuery(`${ROOT}/credentials`, filter),
  credential: (id: string) => `${ROOT}/credentials/${part(id)}`,
  runs: (filter: { agent?: string; state?: string } = {}) => withQuery(`${ROOT}/runs`, filter),
  run: (id: string) => `${ROOT}/runs/${part(id)}`,
  agents: () => `${ROOT}/agents`,
  newAgent: () => `${ROOT}/agents?new=1`,
  agent: (name: string) => `${ROOT}/agents/${part(name)}`,
  backends: () => `${ROOT}/backends`,
  newBackend: (kind?: string) => withQuery(`${ROOT}/backends`, { new: kind ?? '1' }),
  backend: (name: string) => `${ROOT}/backends/${part(name)}`,
  activity: (filter: Readonly<Record<string, string | undefined>> = {}) =>
    withQuery(`${ROOT}/activity`, filter),
  entry: (id: string) => `${ROOT}/activity/${part(id)}`,
  policies: () => `${ROOT}/policies`,
  policy: (name: string) => `${ROOT}/policies/${part(name)}`,
  kinds: () => `${ROOT}/kinds`,
  kind: (type: string) => `${ROOT}/kinds/${part(type)}`,
  keys: () => `${ROOT}/keys`,
  key: (id: string) => `${ROOT}/keys/${part(id)}`,
  people: () => `${ROOT}/operators`,
  person: (id: string) => `${ROOT}/operators/${part(id)}`,
  settings: () => `${ROOT}/settings`,
  account: () => `${ROOT}/me`,
  /** Where a provider of single sign-on sends the browser back to. */
  sso: () => `${ROOT}/sso`,
  /** Where a person allows the login of a command. */
  allow: () => `${ROOT}/allow`,
}
