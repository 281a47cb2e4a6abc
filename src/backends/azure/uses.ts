import type { HttpUse } from '../../domain/use.ts'
import { matches } from '../named-scopes.ts'
import { AUTHORIZATION, CHANGING, httpUse, READING, rules } from '../uses.ts'
import type { Config } from './config.ts'

/** Of the public cloud and the national ones (Microsoft, "Compare Azure Government and global Azure", "Azure China"). */
const MANAGERS = ['management.azure.com', 'management.usgovcloudapi.net', 'management.chinacloudapi.cn']
const GRAPHS = ['graph.microsoft.com', 'graph.microsoft.us', 'microsoftgraph.chinacloudapi.cn']

const GROUP = '/subscriptions/*/resourceGroups/*'
/** Types whose creation makes identities, gives rights, or runs a template that may do both and print keys. */
const POWERS = [
  'Microsoft.Authorization',
  'Microsoft.ManagedIdentity',
  'Microsoft.Resources',
  'Microsoft.KeyVault',
]

/**
 * Resource Manager and Graph. Other resources have a host for each account or vault, which no configuration names. Resource
 * Manager reads keys by POST (`listKeys`), as it starts machines, so no POST is among these.
 */
export function usesOf({ resources, local }: Config, scopes: readonly string[]): readonly HttpUse[] {
  const asked = resources.filter((name) => scopes.some((scope) => matches(scope, name)))
  return asked.flatMap((name) => {
    const site = { base: `https://${name}`, local }
    if (MANAGERS.includes(name)) return httpUse('management', site, { places: [AUTHORIZATION], ...MANAGER })
    return GRAPHS.includes(name) ? httpUse('graph', site, { places: [AUTHORIZATION], ...GRAPH }) : []
  })
}

/** What Resource Manager gives by GET: keys, and a token that can be exchanged for a master key ("Get Functions Admin Token"). */
const KEYS_READ = [
  'Microsoft.DocumentDB/databaseAccounts/*/readonlykeys',
  'Microsoft.Network/connections/*/sharedkey',
  'Microsoft.Automation/automationAccounts/*/agentRegistrationInformation',
  ...['', '/slots/*'].flatMap((slot) =>
    ['functions/admin', 'hostruntime'].map((path) => `Microsoft.Web/sites/*${slot}/${path}`),
  ),
]

/** Microsoft does not distinguish upper and lower case in paths (ARM, "Resource ID"). */
const anyCase = { caseless: true }

const MANAGER = {
  allow: [
    ...rules(READING, ['/subscriptions/**', '/tenants', '/providers/**'], anyCase),
    ...rules(
      ['PUT', 'PATCH', 'DELETE'],
      [GROUP, `${GROUP}/providers/*/*/*`, `${GROUP}/providers/*/*/*/*/*`],
      anyCase,
    ),
  ],
  deny: [
    ...rules(
      CHANGING,
      POWERS.map((type) => `${GROUP}/providers/${type}/**`),
    ),
    ...rules(CHANGING, [
      `${GROUP}/providers/*/*/*/federatedIdentityCredentials/**`,
      `${GROUP}/providers/Microsoft.ContainerRegistry/registries/*/tokens/**`,
    ]),
    ...rules(
      READING,
      KEYS_READ.map((path) => `${GROUP}/providers/${path}/**`),
    ),
  ],
}

/** What shows recovery keys and passwords. A key may stand in its own segment, or in brackets behind the name (OData, "Canonical URL"). */
const GRAPH_KEYS = [
  ...['bitlocker', 'recoveryKeys', 'threatAssessmentRequests'].map(
    (part) => `informationProtection/${part}*`,
  ),
  ...['directory/deviceLocalCredentials*', 'deviceLocalCredentials*'],
  ...['servicePrincipals/*', 'servicePrincipals(*'].map((one) => `${one}/synchronization/secrets*`),
  // Functions of Intune, such as `getFileVaultKey` of a device, and what is below its settings.
  ...['deviceManagement/*/*/*', 'deviceManagement/*(*/*'],
  ...['users/*/managedDevices', 'users(*/managedDevices'].map((devices) => `${devices}*`),
]

/** Reading. Its changes are named one by one: many make passwords. */
const GRAPH = {
  allow: rules(READING, ['/v1.0/**', '/beta/**'], anyCase),
  deny: rules(
    ['*'],
    GRAPH_KEYS.map((path) => `/*/${path}/**`),
  ),
}
