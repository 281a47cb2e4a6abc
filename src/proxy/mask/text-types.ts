const TEXT = new Set([
  ...[
    'json',
    'javascript',
    'ecmascript',
    'xml',
    'x-www-form-urlencoded',
    'x-ndjson',
    'ndjson',
    'jsonl',
    'yaml',
  ],
  ...['x-yaml', 'toml', 'graphql', 'sql', 'x-sh', 'x-javascript', 'json-seq', 'x-json-stream', 'stream+json'],
  ...['jwt', 'jose', 'x-pem-file', 'pem-certificate-chain', 'http', 'x-httpd-php', 'rtf', 'problem', 'csv'],
])

/** Whether bodies of this `Content-Type` are searched for secrets. One without a type is. */
export function isText(contentType: string | undefined): boolean {
  const type = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const [group, name, ...more] = type.split('/')
  // A type that nobody can read is searched, too.
  if (group === undefined || group === '' || name === undefined || name === '' || more.length > 0) return true
  if (group === 'text' || group === 'multipart' || group === 'message') return true
  const suffix = name.slice(name.lastIndexOf('+') + 1)
  return (
    suffix === 'json' || suffix === 'xml' || suffix === 'yaml' || (group === 'application' && TEXT.has(name))
  )
}
