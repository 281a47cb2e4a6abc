import { Type } from 'typebox'
import { checkIdentities, type IdentityEntry } from './identities.ts'
import { IdentitySchema, PlatformSchema } from './identity-schema.ts'
import { checkReceivers, type ReceiverEntry } from './notify.ts'
import { ReceiverSchema } from './notify-schema.ts'
import { checkPlatforms, type PlatformEntry } from './platforms.ts'
import { compilePolicies, type PolicyEntry } from './policies.ts'
import { PolicySchema } from './policy-schema.ts'
import { type Meta, setting } from './setting.ts'
import { checkSso, type SsoEntry } from './sso.ts'
import { SsoSchema } from './sso-schema.ts'

const policiesMeta = {
  description:
    'Rules that admit agents without an administrator. The first policy whose pattern matches the name decides.',
  default: [],
  'x-sources': ['file'],
  'x-reload': true,
  'x-shared': true,
} as const satisfies Meta
const policies = setting(
  policiesMeta,
  Type.Array(PolicySchema, policiesMeta),
  (entries: readonly PolicyEntry[], report) => compilePolicies(entries, report),
)

const notifyMeta = {
  description: 'Receivers that are told of what waits for a person, and of what is broken.',
  default: [],
  'x-reload': true,
  'x-shared': true,
  'x-sources': ['file'],
} as const satisfies Meta
const notify = setting(
  notifyMeta,
  Type.Array(ReceiverSchema, { ...notifyMeta, maxItems: 20 }),
  (entries: readonly ReceiverEntry[], report) => checkReceivers(entries, report),
)

const ssoMeta = {
  description: 'Providers of single sign-on (OpenID Connect) by which people log in at the console.',
  default: [],
  'x-reload': true,
  'x-shared': true,
  'x-sources': ['file'],
} as const satisfies Meta
const sso = setting(
  ssoMeta,
  Type.Array(SsoSchema, { ...ssoMeta, maxItems: 20 }),
  (entries: readonly SsoEntry[], report) => checkSso(entries, report),
)

const identitiesMeta = {
  description:
    'Whose tokens workloads log in with, and what agents they become: continuous integration, pods and machines keep no secret of this server.',
  default: [],
  'x-reload': true,
  'x-shared': true,
  'x-sources': ['file'],
} as const satisfies Meta
const identities = setting(
  identitiesMeta,
  Type.Array(IdentitySchema, { ...identitiesMeta, maxItems: 500 }),
  (entries: readonly IdentityEntry[], report) => checkIdentities(entries, report),
)

const platformsMeta = {
  description:
    'Platforms of hosted agents (Workload Authorization Grant): each agent that one signs for enters without rights.',
  default: [],
  'x-reload': true,
  'x-shared': true,
  'x-sources': ['file'],
} as const satisfies Meta
const platforms = setting(
  platformsMeta,
  Type.Array(PlatformSchema, { ...platformsMeta, maxItems: 100 }),
  (entries: readonly PlatformEntry[], report) => checkPlatforms(entries, report),
)

/** The settings that are lists of entries, each with fields of its own. */
export const ENTRIES = { policies, notify, sso, identities, platforms }
