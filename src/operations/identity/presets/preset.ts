/** The options of `mayfly identity add` that presets read, by their keys. */
export interface Given {
  readonly issuer?: string | undefined
  readonly repository?: string | undefined
  readonly repositoryId?: string | undefined
  readonly ownerId?: string | undefined
  readonly event?: readonly string[] | undefined
  readonly projectId?: string | undefined
  readonly namespaceId?: string | undefined
  readonly organizationId?: string | undefined
  readonly pipelineId?: string | undefined
  readonly workspaceId?: string | undefined
  readonly runPhase?: string | undefined
  readonly namespace?: string | undefined
  readonly serviceAccount?: string | undefined
  readonly serviceAccountUid?: string | undefined
  readonly jwksFile?: string | undefined
  readonly jwksUri?: string | undefined
  readonly caFile?: string | undefined
  readonly tokenReview?: string | undefined
  readonly reviewTokenFile?: string | undefined
  readonly trustDomain?: string | undefined
  readonly subject?: string | undefined
  readonly tenantId?: string | undefined
  readonly principalId?: string | undefined
  readonly accountId?: string | undefined
}

export type GivenKey = keyof Given

/** A setting of the entry, and why it is so. Lines with a reason have it as a comment. */
export interface Line {
  readonly key: string
  readonly value: string | boolean
  readonly why?: string
}

export interface ClaimLine {
  readonly claim: string
  readonly value: string
  readonly isPattern?: true
  readonly why?: string
}

/** What a preset says; the common settings (audience, scopes) are not its own. */
export interface PresetEntry {
  /** Part of the default name of the entry. */
  readonly about: string
  /** `issuer`, `trust_domain`, `subject` and so on, in their order. */
  readonly lines: readonly Line[]
  readonly claims: readonly ClaimLine[]
  /** After the name of the entry, for the default name of the agent: `-{run_id}`. */
  readonly agentSuffix?: string
  /** `max_age`, `once` and others that come last. */
  readonly last?: readonly Line[]
}

export interface Preset {
  readonly name: string
  readonly summary: string
  /** The page of the vendor that has the names and forms of the claims. */
  readonly source: string
  readonly needs: readonly GivenKey[]
  readonly takes: readonly GivenKey[]
  /** What the job or machine must do, for the comment above the entry. */
  readonly use: string
  entry(given: (key: GivenKey) => string, all: Given): PresetEntry
}

/** Text as a pattern of RE2 that takes this text alone. */
export const asPattern = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** A name of an entry or agent from text of a platform. */
export const asName = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
    .slice(0, 80)

export const NOT_PARSED: Line = {
  key: 'subject_pattern',
  value: '.+',
  why: 'The form of sub may change, and its names can be taken by somebody else: the claims below decide.',
}

/** Where a platform hands one token out several times. */
export const handedOutAgain = (maxAge: string, whose: string): Line[] => [
  { key: 'max_age', value: maxAge, why: `${whose} The cost: a stolen token works for as long.` },
  { key: 'once', value: false },
]

/** Where a job gets one token, before it begins: it can log in once, perhaps late, and then works for long. */
export const onePerJob = (longest: string, whose: string): Line[] => [
  {
    key: 'max_age',
    value: longest,
    why: `${whose} The cost: a stolen token that was not used works for as long.`,
  },
  {
    key: 'token_ttl',
    value: longest,
    why: 'It can log in once: the access token has to last as long as the longest job, and so has the agent.',
  },
  { key: 'agent_ttl', value: longest },
]
