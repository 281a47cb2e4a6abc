/** Words that say in the name of a type that it is text. */
const WORDS: ReadonlySet<string> = new Set([
  ...['json', 'ndjson', 'jsonl', 'json5', 'xml', 'yaml', 'toml', 'csv', 'rtf', 'http', 'problem'],
  ...['urlencoded', 'javascript', 'ecmascript', 'typescript', 'php', 'sh', 'sql', 'graphql', 'diff', 'patch'],
  ...['jwt', 'jose', 'prettyjws', 'pem', 'openmetrics'],
])

/** Whether bodies of this `Content-Type` are searched for secrets. One without a type is. */
export function isText(contentType: string | undefined): boolean {
  const type = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const [group, name, ...more] = type.split('/')
  // A type that nobody can read is searched, too.
  if (group === undefined || group === '' || name === undefined || name === '' || more.length > 0) return true
  if (group === 'text' || group === 'multipart' || group === 'message') return true
  // `x-amz-json-1.1`, `svg+xml`, `openmetrics-text`.
  return name.split(/[.+-]/).some((word) => WORDS.has(word))
}
