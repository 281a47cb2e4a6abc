import type { Given, Line, Preset, PresetEntry } from './presets/preset.ts'

/** What every entry says, whatever the preset. */
export interface Common {
  readonly name: string | undefined
  readonly audience: string
  readonly agent: string | undefined
  readonly scopes: readonly string[]
  /** Public keys of the issuer, in place of its addresses. */
  readonly keys: readonly Readonly<Record<string, unknown>>[] | undefined
}

export interface WrittenEntry {
  readonly name: string
  /** The lines of the entry without indentation, the first with the dash of the list. */
  readonly lines: readonly string[]
}

/** The entry of a preset as YAML, with the reasons as comments. */
export function writeEntry(
  preset: Preset,
  entry: PresetEntry,
  { name: chosen, audience, agent, scopes, keys }: Common,
  given: Given,
): WrittenEntry {
  const name = chosen ?? `${preset.name}-${entry.about}`
  const isHttp = [given.issuer, given.jwksUri, given.tokenReview].some((url) => url?.startsWith('http:'))
  const [whose, ...subject] = entry.lines
  const body = [
    ...wrapped(preset.use),
    ...wrapped(`Claims: ${preset.source}`),
    `name: ${scalar(name)}`,
    ...(whose === undefined ? [] : setting(whose)),
    `audience: ${scalar(audience)}`,
    ...subject.flatMap(setting),
    ...(entry.claims.length > 0 ? ['claims:', ...entry.claims.flatMap(claim).map(indented)] : []),
    `agent: ${scalar(agent ?? `${name}${entry.agentSuffix ?? ''}`)}`,
    'scopes:',
    ...scopes.map((scope) => `  - ${scalar(scope)}`),
    ...(entry.last ?? []).flatMap(setting),
    ...more('jwks_uri', given.jwksUri),
    ...(keys === undefined ? [] : ['jwks:', '  keys:', ...keys.map((key) => `    - ${JSON.stringify(key)}`)]),
    ...more('ca_file', given.caFile),
    ...(given.tokenReview === undefined
      ? []
      : [
          'token_review:',
          `  url: ${scalar(given.tokenReview)}`,
          `  token_file: ${scalar(given.reviewTokenFile ?? '')}`,
        ]),
    ...(isHttp ? ['local: true'] : []),
  ]
  const first = body.findIndex((line) => !line.startsWith('#'))
  return {
    name,
    lines: body.map((line, index) => (index < first ? line : index === first ? `- ${line}` : `  ${line}`)),
  }
}

const indented = (line: string) => `  ${line}`
const more = (key: string, value: string | undefined) =>
  value === undefined ? [] : [`${key}: ${scalar(value)}`]

const setting = ({ key, value, why }: Line) => [
  ...(why === undefined ? [] : wrapped(why)),
  `${key}: ${typeof value === 'boolean' ? value : scalar(value)}`,
]

const claim = ({ claim: name, value, isPattern, why }: PresetEntry['claims'][number]) => [
  ...(why === undefined ? [] : wrapped(why)),
  `${scalar(name)}: ${isPattern === true ? `{ pattern: ${quoted(value)} }` : quoted(value)}`,
]

/** Comment lines. */
function wrapped(text: string): string[] {
  const lines = ['#']
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? ''
    if (last.length + word.length > 98 && last !== '#') lines.push(`# ${word}`)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`

/** Without quotes only where YAML cannot read anything else than this text. */
const scalar = (text: string) =>
  /^(?:https?:\/\/)?[A-Za-z](?:[A-Za-z0-9._/-]|:(?=[A-Za-z0-9]))*$/.test(text) &&
  !/^(?:true|false|null|yes|no|on|off|y|n|inf|nan)$/i.test(text)
    ? text
    : quoted(text)
