/** The administrator's own SQL: placeholders, and where they may stand. */
const KNOWN = ['name', 'password', 'expiration', 'scopes'] as const
type Placeholder = (typeof KNOWN)[number]

/** By PostgreSQL's rules for a delimited identifier (lexical structure, §4.1.1). */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A string constant; with a backslash in it the `E''` form, which reads the same under every setting. */
export function quoteLiteral(text: string): string {
  const quoted = text.replaceAll("'", "''")
  return text.includes('\\') ? ` E'${quoted.replaceAll('\\', '\\\\')}'` : `'${quoted}'`
}

export function quoteList(texts: readonly string[]): string {
  return `ARRAY[${texts.map(quoteLiteral).join(', ')}]::text[]`
}

const PLACEHOLDER = /\{\{\s*([a-z]+)\s*\}\}/g

/** Puts the values, which are SQL already, into a statement that `findStatementFaults` has passed. */
export function fillStatement(statement: string, values: Readonly<Record<Placeholder, string>>): string {
  return statement.replace(PLACEHOLDER, (_, name: Placeholder) => values[name])
}

/** The commands that begin or end a transaction, or a part of one (PostgreSQL, SQL Commands). */
const TRANSACTION =
  /^[\s;]*(?:abort|begin|commit|end|prepare\s+transaction|release|rollback|savepoint|start)\b/i

/** Block comments nest in PostgreSQL: here four deep, a deeper one counts as open. */
const comment = (inner: string) => String.raw`\/\*(?:[^*/]|\*(?!\/)|\/(?!\*)|${inner})*\*\/`
const ESCAPES = String.raw`(?<![\w$])[eE]'`
/** A comment, string constant or quoted identifier, or the beginning of one that does not end. */
const QUOTED = new RegExp(
  [
    '--[^\\r\\n]*',
    comment(comment(comment(comment('(?!)')))),
    String.raw`${ESCAPES}(?:[^'\\]|''|\\[^])*'`,
    `'(?:[^']|'')*'`,
    '"(?:[^"]|"")*"',
    String.raw`(?<open>${ESCAPES}|['"]|\/\*)`,
  ].join('|'),
  'g',
)

/**
 * Why a statement cannot be used, or `undefined`. A placeholder brings its own quotes, so one inside quotes or a comment
 * would end them early: it is refused. The body of a dollar quote (`DO $$…$$`) is read as code.
 */
export function findStatementFaults(statement: string): string | undefined {
  if (statement.includes('\0')) return 'holds a NUL character'
  for (const { 0: quoted, groups } of statement.matchAll(QUOTED)) {
    // A dollar quote's end inside it means that a body was read out of step: better refused than misread.
    if (groups?.['open'] !== undefined || (/^[eE"']/.test(quoted) && /\$\w*\$/.test(quoted))) {
      return 'leaves a quote or a comment open'
    }
    if (/\{\{|\}\}/.test(quoted))
      return 'holds a placeholder inside quotes or a comment; it brings its own quotes'
  }
  const code = statement.replace(QUOTED, ' ')
  const rest = code.replace(PLACEHOLDER, (all, name) =>
    (KNOWN as readonly string[]).includes(name) ? ' ' : all,
  )
  if (/\{\{|\}\}/.test(rest)) {
    return `holds an unknown placeholder; known are ${KNOWN.map((name) => `{{${name}}}`).join(' ')}`
  }
  // All of a role is made in one transaction: what had been committed would stay when a later statement fails.
  return TRANSACTION.test(code) ? 'begins or ends a transaction' : undefined
}
