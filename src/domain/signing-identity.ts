import type { GitObject, GitPerson } from './formats/git-object.ts'
import { Problem } from './problems.ts'

/**
 * Which commits an agent's key signs.
 * - `strict`: author and committer are the agent.
 * - `committer`: the committer is the agent; the author may be somebody else, as after a cherry-pick.
 * - `any`: no check.
 */
export type SigningIdentity = 'strict' | 'committer' | 'any'

/** Throws `not_allowed` if the object names somebody else where the rule requires the agent. */
export function requireIdentity(object: GitObject, agent: GitPerson, rule: SigningIdentity): void {
  if (rule === 'any') return
  const committerRole = object.author === undefined ? 'tagger' : 'committer'
  if (rule === 'strict' && object.author !== undefined && !isSame(object.author, agent))
    throw foreign('author', agent)
  if (!isSame(object.committer, agent)) throw foreign(committerRole, agent)
}

/** Byte for byte: a name that only looks the same is a different name. */
function isSame(one: GitPerson, other: GitPerson): boolean {
  return one.name === other.name && one.email === other.email
}

function foreign(role: string, { name, email }: GitPerson): Problem {
  return new Problem('not_allowed', {
    message: `The ${role} is not ${name} <${email}>, whose key would sign this.`,
  })
}
