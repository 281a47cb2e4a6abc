import type { Agent, ChangeAgent, CreateAgent } from '../../../../src/client/wire.ts'
import { linesOf } from '../../ui/fields.tsx'
import { NEVER } from '../../ui/lifetimes.tsx'

/** What a person has typed, as the form of an agent has it. */
export interface AgentForm {
  readonly name: string
  readonly scopes: string
  /** A duration from now; empty: as it is; `never`: without end. */
  readonly lifetime: string
  readonly owner: string
  readonly description: string
  readonly audiences: string
  /** End the credentials that its scopes do not cover any more. */
  readonly isRevoking: boolean
}

export const EMPTY: AgentForm = {
  name: '',
  scopes: '',
  lifetime: '',
  owner: '',
  description: '',
  audiences: '',
  isRevoking: false,
}

export function formOf(agent: Agent): AgentForm {
  return {
    ...EMPTY,
    name: agent.name,
    scopes: agent.scopes.join('\n'),
    owner: agent.owner ?? '',
    description: agent.description ?? '',
    audiences: (agent.audiences ?? []).join('\n'),
  }
}

export function newAgentOf(form: AgentForm): CreateAgent {
  const { lifetime } = form
  const [owner, description] = [form.owner.trim(), form.description.trim()]
  const audiences = linesOf(form.audiences)
  return {
    name: form.name.trim(),
    scopes: linesOf(form.scopes),
    ...(lifetime === '' ? {} : { expires_in: lifetime }),
    ...(owner === '' ? {} : { owner }),
    ...(description === '' ? {} : { description }),
    ...(audiences.length === 0 ? {} : { audiences }),
  }
}

/**
 * What is sent: only what was changed. Scopes are added and taken one by one, because replacing them all would end those that are
 * held for a time. Undefined: nothing was changed.
 */
export function changesOf(agent: Agent, form: AgentForm): ChangeAgent | undefined {
  const before = formOf(agent)
  const wanted = linesOf(form.scopes)
  const added = wanted.filter((scope) => !agent.scopes.includes(scope))
  const removed = agent.scopes.filter((scope) => !wanted.includes(scope))
  const isOther = (field: 'owner' | 'description') => form[field].trim() !== before[field]
  const audiences = linesOf(form.audiences)
  const changes: ChangeAgent = {
    ...(added.length === 0 ? {} : { add_scopes: [...new Set(added)] }),
    ...(removed.length === 0 ? {} : { remove_scopes: removed }),
    ...(form.lifetime === '' ? {} : endOf(form.lifetime)),
    ...(isOther('owner') ? { owner: form.owner.trim() || null } : {}),
    ...(isOther('description') ? { description: form.description.trim() || null } : {}),
    ...(audiences.join('\n') === linesOf(before.audiences).join('\n') ? {} : { audiences }),
    ...(form.isRevoking ? { revoke: true } : {}),
  }
  return Object.keys(changes).length === 0 ? undefined : changes
}

const endOf = (lifetime: string): ChangeAgent =>
  lifetime === NEVER ? { expires_at: null } : { expires_in: lifetime }
