import { isName, isReservedName } from '../agent.ts'
import { InvalidValue, quote } from '../fault.ts'
import { type AgentTemplate, type Claims, IdentityRefused } from './identity.ts'
import { readClaim } from './match.ts'

/** With `concurrent: suffix` a name gets seven characters more, and names have 128 at most. */
export const MAX_EXPANDED_NAME = 121

/** Reads `ci-{run_id}`. Throws `InvalidValue` for braces that do not pair, and for text that no agent's name can have. */
export function parseTemplate(text: string): AgentTemplate {
  const parts = text.split(/(\{[^{}]*\})/).flatMap((part): AgentTemplate['parts'] => {
    if (part === '') return []
    return part.startsWith('{') && part.endsWith('}') ? [{ claim: part.slice(1, -1) }] : [{ text: part }]
  })
  const fixed = parts.flatMap((part) => ('text' in part ? [part.text] : []))
  if (fixed.some((part) => /[{}]/.test(part))) throw new InvalidValue(`${quote(text)} has an unmatched brace`)
  if (parts.some((part) => 'claim' in part && !/^[^\s\p{C}]+$/u.test(part.claim)))
    throw new InvalidValue(`${quote(text)} has braces without the name of a claim`)
  if (!fixed.some((part) => /[A-Za-z0-9]/.test(part)))
    throw new InvalidValue(`${quote(text)} has no letter or digit of its own, so it could give any name`)
  // A digit stands for each value.
  if (!isName(parts.map((part) => ('text' in part ? part.text : '0')).join('')))
    throw new InvalidValue(
      `${quote(text)} gives no name of an agent: letters, digits, ".", "_" and "-", with a letter or digit first`,
    )
  if (fixed.join('').length > MAX_EXPANDED_NAME)
    throw new InvalidValue(`${quote(text)} is longer than ${MAX_EXPANDED_NAME} characters`)
  if (isReservedName(text)) throw new InvalidValue(`${quote(text)} is reserved`)
  return { text, parts }
}

export interface ExpandedName {
  readonly name: string
  /** Those of the claims, in the order of the template. */
  readonly values: readonly string[]
}

/**
 * The name that a template gives for these claims. Throws `IdentityRefused` with the reason `value`, and the claim as its
 * detail, if a value is missing or cannot be a part of a name: it holds `*`, `+`, `/`, `..`, white space or another
 * character that names do not have.
 */
export function expandAgentName({ parts }: AgentTemplate, claims: Claims): ExpandedName {
  const values: string[] = []
  const name = parts.map((part) => {
    if ('text' in part) return part.text
    const value = readClaim(claims, part.claim)
    if (value === undefined) throw new IdentityRefused('value', [], `the claim ${part.claim} is missing`)
    if (!/^[A-Za-z0-9._-]+$/.test(value))
      throw new IdentityRefused(
        'value',
        [],
        `the claim ${part.claim} has characters that no name of an agent has`,
      )
    values.push(value)
    return value
  })
  const whole = name.join('')
  if (!isName(whole) || whole.length > MAX_EXPANDED_NAME || whole.includes('..') || isReservedName(whole))
    throw new IdentityRefused('value', [], 'the claims give no name that an agent may have')
  return { name: whole, values }
}
