/** The administrator's own SQL: placeholders, and where they may stand. */
const KNOWN = ['name', 'password', 'expiration', 'scopes'] as const
export type Placeholder = (typeof KNOWN)[number]

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

/** Puts the values, which are SQL already, into a statement that `findPlaceholderFaults` has passed. */
export function fillStatement(statement: string, values: Readonly<Record<Placeholder, string>>): string {
  return statement.replace(/\{\{\s*([a-z]+)\s*\}\}/g, (_, name: Placeholder) => values[name])
}

/** The commands that begin or end a transaction, or a part of one (PostgreSQL, SQL Commands). */
const TRANSACTION = /^(?:abort|begin|commit|end|prepare\s+transaction|release|rollback|savepoint|start)\b/i

/** Why a statement cannot be used, or `undefined`. */
export function findStatementFaults(statement: string): string | undefined {
  const faults = findPlaceholderFaults(statement)
  if (faults !== undefined) return faults
  // All of a role is made in one transaction: what had been committed would stay when a later statement fails.
  if (TRANSACTION.test(statement.slice(firstWord(statement)))) return 'begins or ends a transaction'
  return undefined
}

/** Where the command begins, behind white space, comments and empty statements. */
function firstWord(statement: string): number {
  for (let at = 0; ; ) {
    const blank = /^[\s;]+/.exec(statement.slice(at))?.[0].length ?? 0
    const comment = /^(?:--|\/\*)/.test(statement.slice(at)) ? quotedLength(statement, at) : 0
    const length = Math.max(blank, comment === 'open' ? 0 : comment)
    if (length === 0) return at
    at += length
  }
}

/**
 * Why its placeholders cannot be filled, or `undefined`. A placeholder brings its own quotes, so one inside quotes or
 * a comment would end them early: it is refused. The body of a dollar quote (`DO $$…$$`) is read as code.
 */
function findPlaceholderFaults(statement: string): string | undefined {
  if (statement.includes('\0')) return 'holds a NUL character'
  let at = 0
  while (at < statement.length) {
    const rest = statement.slice(at)
    const placeholder = /^\{\{\s*([^{}]*?)\s*\}\}/.exec(rest)
    if (placeholder !== null) {
      if (!(KNOWN as readonly string[]).includes(placeholder[1] ?? '')) {
        return `holds an unknown placeholder; known are ${KNOWN.map((name) => `{{${name}}}`).join(' ')}`
      }
      at += placeholder[0].length
      continue
    }
    if (rest.startsWith('{{') || rest.startsWith('}}')) return 'holds a placeholder that is not well formed'
    const quoted = quotedLength(statement, at)
    if (quoted === 'open') return 'leaves a quote or a comment open'
    if (quoted > 0 && /\{\{|\}\}/.test(statement.slice(at, at + quoted))) {
      return 'holds a placeholder inside quotes or a comment; it brings its own quotes'
    }
    at += Math.max(quoted, 1)
  }
  return undefined
}

/** Length of the quote or comment that begins here; 0 when none does. */
function quotedLength(statement: string, at: number): number | 'open' {
  const rest = statement.slice(at)
  if (rest.startsWith('--')) return /^--[^\r\n]*/.exec(rest)?.[0].length ?? 'open'
  if (rest.startsWith('/*')) return commentLength(rest)
  const escapes = /^[eE]'/.test(rest) && !/[\w$]/.test(statement[at - 1] ?? ' ')
  const match = escapes
    ? /^[eE]'(?:[^'\\]|''|\\[\s\S])*'/.exec(rest)
    : rest.startsWith("'")
      ? /^'(?:[^']|'')*'/.exec(rest)
      : rest.startsWith('"')
        ? /^"(?:[^"]|"")*"/.exec(rest)
        : undefined
  if (match === undefined) return 0
  // A dollar quote's end inside it means that a body was read out of step: better refused than misread.
  if (match === null || /\$\w*\$/.test(match[0])) return 'open'
  return match[0].length
}

/** Block comments nest in PostgreSQL, unlike in the SQL standard's older form. */
function commentLength(text: string): number | 'open' {
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const pair = text.slice(at, at + 2)
    if (pair === '/*' || pair === '*/') {
      depth += pair === '/*' ? 1 : -1
      at += 1
      if (depth === 0) return at + 1
    }
  }
  return 'open'
}
