import { invalid, Problem } from './problems.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const RESERVED = new Set(['admin', 'openid', 'local', 'system', 'mayfly'])

/** decisions.md §5.1. Backend names follow the same rule, so that scopes and addresses stay simple. */
export function requireName(name: string, field = 'name'): void {
  if (!NAME.test(name)) {
    throw invalid(`"${field}" is 1 to 128 letters, digits, ".", "_" or "-", starting with a letter or digit.`)
  }
  if (RESERVED.has(name.toLowerCase()))
    throw new Problem('conflict', { message: `This ${field} is reserved.` })
}

/** Names are unique ignoring case. */
export function nameKey(name: string): string {
  return name.toLowerCase()
}
