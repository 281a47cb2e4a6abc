import type { AgentTemplate, Identity, Trusted } from './identity.ts'

/** What `concurrent: suffix` puts after a name. */
const SUFFIX = /-[a-z0-9]{6}$/

/**
 * The entry that gives this name to an agent of its own (`identities` first): nobody else may take it. Case does not count,
 * as names are unique without it. The agents of a platform have its name in front.
 */
export function reservedBy(trusted: Trusted, name: string): string | undefined {
  const key = name.toLowerCase()
  const identity = trusted.identities.find((entry) => canGive(entry, key))
  return (identity ?? trusted.platforms.find((entry) => key.startsWith(`${entry.name.toLowerCase()}-`)))?.name
}

function canGive({ agent, concurrent }: Pick<Identity, 'agent' | 'concurrent'>, key: string): boolean {
  if (gives(agent, key)) return true
  return concurrent === 'suffix' && SUFFIX.test(key) && gives(agent, key.replace(SUFFIX, ''))
}

/** Each claim stands for one character or more. Takes the first place of each text: linear in the length of the name. */
function gives({ parts }: AgentTemplate, key: string): boolean {
  let [at, isOpen] = [0, false]
  for (const [index, part] of parts.entries()) {
    if ('claim' in part) {
      at += 1
      isOpen = true
      continue
    }
    const text = part.text.toLowerCase()
    const isLast = index === parts.length - 1
    const found = !isOpen ? at : isLast ? key.length - text.length : key.indexOf(text, at)
    if (found < at || !key.startsWith(text, found)) return false
    at = found + text.length
    isOpen = false
  }
  return isOpen ? at <= key.length : at === key.length
}
