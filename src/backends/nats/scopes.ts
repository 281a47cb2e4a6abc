import { isScope } from '../../domain/scope.ts'

/** `allow` without entries would allow everything: https://docs.nats.io/running-a-nats-service/configuration/securing_nats/authorization */
export type Permission = { readonly allow: readonly string[] } | { readonly deny: readonly string[] }

interface Parsed {
  readonly subject: string
  readonly permission: string
}

export function isOurScope(scope: string): boolean {
  return isScope(scope) && parse(scope) !== undefined
}

function parse(scope: string): Parsed | undefined {
  const [text = '', permission = '*', ...rest] = scope.split(':')
  const subject = subjectOf(text)
  const isKnown = permission === 'pub' || permission === 'sub' || permission === '*'
  return subject === undefined || !isKnown || rest.length > 0 ? undefined : { subject, permission }
}

/** Tokens with dots between them; `*` only as the last one, which becomes `>`, any one or more further tokens. */
function subjectOf(text: string): string | undefined {
  const tokens = text.split('.')
  const last = tokens.length - 1
  for (const [index, token] of tokens.entries()) {
    if (token === '') return undefined
    if (token.includes('*') && (token !== '*' || index !== last)) return undefined
  }
  if (tokens[last] === '*') tokens[last] = '>'
  return tokens.join('.')
}

/** What is not granted is denied, by name where nothing is. */
export function permissionsOf(scopes: readonly string[]): { pub: Permission; sub: Permission } {
  const parsed = scopes.map(parse).filter((scope) => scope !== undefined)
  const permission = (name: string): Permission => {
    const granted = parsed.filter((scope) => scope.permission === name || scope.permission === '*')
    const allow = [...new Set(granted.map(({ subject }) => subject))]
    return allow.length === 0 ? { deny: ['>'] } : { allow }
  }
  return { pub: permission('pub'), sub: permission('sub') }
}
