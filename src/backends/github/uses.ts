import type { HttpUse, Rule } from '../../domain/use.ts'
import { ALL, AUTHORIZATION, BASIC, CHANGING, gitRules, httpUse, READING, rules, segment } from '../uses.ts'
import type { Config } from './config.ts'
import { matches, parseScope, type Wish } from './scopes.ts'

/** More repositories than this are allowed as all of their account: GitHub limits the token to them anyway. */
const MOST_TARGETS = 24

/** What is the same for everybody, or public. */
const COMMON = [
  ...['/', '/rate_limit', '/meta', '/versions', '/zen', '/octocat', '/emojis', '/installation/repositories'],
  ...['/search/**', '/gitignore/**', '/licenses/**', '/codes_of_conduct/**', '/advisories/**'],
  ...['/users/**', '/orgs/*', '/orgs/*/repos', '/apps/*'],
  // The next page of a listing is named so, by a number.
  '/repositories/*/**',
]

/** Paths of a repository that make credentials, or what credentials are made from. */
const KEYS = [
  '/keys/**',
  '/codespaces/**',
  '/pulls/*/codespaces/**',
  '/actions/oidc/**',
  '/actions/runners/**',
]
/** Those that a scope may name by their permission: what is stored there cannot be read again. */
const STORED = {
  secrets: ['/actions/secrets/**', '/agents/secrets/**', '/environments/*/secrets/**'],
  dependabot_secrets: ['/dependabot/secrets/**'],
  repository_hooks: ['/hooks/**'],
}

interface Target {
  readonly owner: string
  readonly repository: string
  readonly writes: boolean
  readonly clones: boolean
  readonly pushes: boolean
}

/** The REST API and git over HTTPS. GraphQL is not among them: its one path does everything. */
export function usesOf(settings: Config, scopes: readonly string[]): readonly HttpUse[] {
  const wishes = scopes.flatMap((scope) => parseScope(scope) ?? [])
  const targets = targetsOf(settings, wishes)
  if (targets.length === 0) return []
  const { base_url: base, local, ca } = settings
  const site = (address: string) => ({ base: address, local, ca })
  const hosts = hostsOf(base)
  const git = {
    places: [BASIC, AUTHORIZATION],
    allow: targets
      .filter(({ clones }) => clones)
      .flatMap((one) => gitRules([`/${pathOf(one)}`], one.pushes, { caseless: true })),
  }
  const raw = targets.filter(({ clones }) => clones).map((one) => `/${pathOf(one)}/**`)
  const uploads = targets
    .filter(({ pushes }) => pushes)
    .map((one) => `/repos/${pathOf(one)}/releases/*/assets`)
  return [
    ...httpUse('api', site(base), {
      places: [AUTHORIZATION, BASIC],
      allow: [...targets.flatMap(apiRules), ...rules(READING, COMMON)],
      deny: denied(wishes),
    }),
    ...(git.allow.length === 0 ? [] : httpUse('git', site(hosts.git), git)),
    ...(hosts.raw === undefined || raw.length === 0
      ? []
      : httpUse('raw', site(hosts.raw), {
          places: [AUTHORIZATION],
          allow: rules(READING, raw, { caseless: true }),
        })),
    ...(hosts.uploads === undefined || uploads.length === 0
      ? []
      : httpUse('uploads', site(hosts.uploads), {
          places: [AUTHORIZATION],
          allow: rules(['POST'], uploads, { caseless: true }),
        })),
  ]
}

/** An Enterprise Server has everything on one host; its API is below `/api/v3`. */
function hostsOf(base: string): { git: string; raw?: string; uploads?: string } {
  const { host, origin } = new URL(URL.canParse(base) ? base : 'https://invalid.invalid')
  if (host === 'api.github.com') {
    return {
      git: 'https://github.com',
      raw: 'https://raw.githubusercontent.com',
      uploads: 'https://uploads.github.com',
    }
  }
  return { git: host.endsWith('.ghe.com') ? origin.replace('//api.', '//') : origin }
}

const pathOf = ({ owner, repository }: Target) => `${segment(owner)}/${segment(repository)}`

function apiRules(target: Target): readonly Rule[] {
  const path = [`/repos/${pathOf(target)}/**`]
  return [
    ...rules(target.writes ? ALL : READING, path, { caseless: true }),
    ...(target.writes ? rules(['POST'], ['/markdown/**']) : []),
  ]
}

/** Each repository once, with all that the scopes give of it. */
function targetsOf({ owner: configured }: Config, wishes: readonly Wish[]): readonly Target[] {
  const found = new Map<string, Target>()
  const names = wishes.map(({ repository }) => repository)
  const isMany = new Set(names).size > MOST_TARGETS
  for (const wish of wishes) {
    const owner = wish.owner ?? configured ?? '*'
    const repository = isMany ? '*' : wish.repository
    const key = `${owner}/${repository}`.toLowerCase()
    const before = found.get(key)
    const writes = wish.level !== 'read'
    const ofContents = matches(wish.permission, 'contents')
    found.set(key, {
      owner,
      repository,
      writes: writes || before?.writes === true,
      clones: ofContents || before?.clones === true,
      pushes: (writes && ofContents) || before?.pushes === true,
    })
  }
  return [...found.values()]
}

function denied(wishes: readonly Wish[]): readonly Rule[] {
  const named = new Set(wishes.map(({ permission }) => permission))
  const stored = Object.entries(STORED).flatMap(([permission, paths]) => (named.has(permission) ? [] : paths))
  const below = (paths: readonly string[]) =>
    ['/repos/*/*', '/repositories/*'].flatMap((root) => paths.map((path) => `${root}${path}`))
  return [
    ...rules(CHANGING, below([...KEYS, ...stored])),
    // It shows the secrets that it found.
    ...(named.has('secret_scanning_alerts') ? [] : rules(['*'], below(['/secret-scanning/**']))),
  ]
}
