import type { Static } from 'typebox'
import type { HttpUse as WireHttpUse, UseRules as WireRules, Use as WireUse } from '../../api/uses.ts'
import type { HttpUse, Place, Rule, Use, UseRules } from '../../domain/use.ts'

/** A use on the wire. The way back is `readUse` of the proxy. */
export function presentUse(use: Use): Static<typeof WireUse> {
  if (use.protocol === 'http') return presentHttp(use)
  const { accounts, databases, ...rest } = use
  return {
    ...rest,
    ...(accounts && { accounts: [...accounts] }),
    ...(databases && { databases: [...databases] }),
  }
}

export function presentUseRules({ uses, allow, deny, services }: UseRules): Static<typeof WireRules> {
  return {
    ...(uses && { uses: uses.map(presentHttp) }),
    ...(allow && { allow: allow.map(presentRule) }),
    ...(deny && { deny: deny.map(presentRule) }),
    ...(services && { services: [...services] }),
  }
}

function presentHttp({ accounts, places, allow, deny, ...use }: HttpUse): Static<typeof WireHttpUse> {
  return {
    ...use,
    ...(accounts && { accounts: [...accounts] }),
    places: places.map(presentPlace),
    allow: allow.map(presentRule),
    deny: deny.map(presentRule),
  }
}

const presentRule = <R extends Rule>(rule: R) => ({ ...rule, methods: [...rule.methods] })

function presentPlace(place: Place): Static<typeof WireHttpUse>['places'][number] {
  if (place.in === 'body') {
    const { maxBytes, ...rest } = place
    return { ...rest, max_bytes: maxBytes }
  }
  if (place.in !== 'sigv4') return place
  const { keyId, allow, deny, ...rest } = place
  return { ...rest, key_id: keyId, ...(allow === undefined ? {} : { allow: [...allow] }), deny: [...deny] }
}
