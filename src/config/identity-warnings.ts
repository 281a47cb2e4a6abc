import type { Identity, Trusted } from '../domain/identity/identity.ts'
import { reservedBy } from '../domain/identity/reserved-names.ts'

export interface IdentityWarning {
  /** Name of the entry. */
  readonly entry: string
  readonly message: string
}

/**
 * What is well-formed and yet trusts more than its author may think: names that somebody else can take over, code that
 * nobody reviewed, more branches than one. The cases come from the platforms' own pages and from the corpus in
 * `test/support/subject-conditions.json`.
 */
export function identityWarnings(trusted: Trusted): IdentityWarning[] {
  return trusted.identities.flatMap((entry) =>
    [
      ...sharedAudience(entry),
      ...github(entry),
      ...gitlab(entry),
      ...circleci(entry),
      ...terraform(entry),
      ...kubernetes(entry),
      ...sharedName(entry, trusted),
      ...lifetimes(entry),
    ].map((message) => ({ entry: entry.name, message })),
  )
}

/** Audiences that other services demand: each of them could use the token here. */
const SHARED =
  /^(?:sts\.amazonaws\.com|api:\/\/AzureADTokenExchange|sigstore|vault|aws\.workload\.identity|https:\/\/kubernetes\.default\.svc.*|(?:https:)?\/\/iam\.googleapis\.com\/.*|https:\/\/github\.com\/[^/]*)$/

function* sharedAudience({ audience }: Identity): Generator<string> {
  if (SHARED.test(audience))
    yield 'audience: other services demand this one, too; whoever gets a token there can use it here'
}

/** The events at which nobody who may write to the repository has decided what runs, or with which data. */
export const FOREIGN_EVENTS = [
  'pull_request',
  'pull_request_target',
  'workflow_run',
  'issue_comment',
] as const

function* github(entry: Identity): Generator<string> {
  const text = plainText(entry)
  if (!isOf(entry, /^https:\/\/token\.actions\.|\/_services\/token$/, /^repo:|^job_workflow_ref:/)) return
  // `repo:OWNER@1/NAME@2:` has the numbers in it.
  if (!pins(entry, 'repository_id') && !/^repo:[^:/]+@\d+\/[^:]+@\d+:/.test(text))
    yield 'claims: pin repository_id; the name of a repository can be given up, and taken by somebody else'
  const owner = /^repo:([\w.@-]+)\//.exec(text)?.[1]
  if (
    owner !== undefined &&
    takes(entry, `repo:${owner}/any:ref:refs/heads/any`) &&
    !pins(entry, 'repository_id')
  )
    yield `subject_pattern: takes every repository of ${owner}`
  const [, repository = 'acme/any'] = /^repo:([\w.@-]+\/[\w.@-]+):/.exec(text) ?? []
  const taken = FOREIGN_EVENTS.filter((event) => {
    if (event === 'pull_request' && !takes(entry, `repo:${repository}:pull_request`)) return false
    return entry.claims.every(({ claim, matches }) => claim !== 'event_name' || matches(event))
  })
  if (taken.length > 0)
    yield `claims: name the values of event_name; as it is, a workflow may run for ${taken.join(', ')}, and no claim says that a fork's code or text decides what it does`
}

function* gitlab(entry: Identity): Generator<string> {
  const text = plainText(entry)
  if (!isOf(entry, /^https:\/\/gitlab\.com$/, /^project_(?:path|id):/)) return
  if (!pins(entry, 'project_id') && !text.startsWith('project_id:'))
    yield 'claims: pin project_id; the path of a project can be given up, and taken by somebody else'
  const group = /^project_path:([\w.-]+)\//.exec(text)?.[1]
  if (group !== undefined && takes(entry, `project_path:${group}/any/any:ref_type:branch:ref:main`))
    if (!pins(entry, 'project_id')) yield `subject_pattern: takes every project of ${group}`
  const project = /^(project_(?:path:[\w./-]+|id:\d+)):/.exec(text)?.[1] ?? 'project_path:acme/any'
  if (pins(entry, 'ref_protected', 'true') || pins(entry, 'ref')) return
  if (takes(entry, `${project}:ref_type:branch:ref:any`))
    yield 'claims: add ref_protected: "true"; as it is, every branch is taken, those of merge requests included'
  else if (['branch', 'tag'].every((type) => takes(entry, `${project}:ref_type:${type}:ref:main`)))
    yield 'subject_pattern: takes a tag with the name of the branch, which others may create'
}

function* circleci(entry: Identity): Generator<string> {
  if (!isOf(entry, /^https:\/\/oidc\.circleci\.com\//, /^org\/[\w-]+\/project\//)) return
  const organization = /^org\/[\w-]+/.exec(plainText(entry))?.[0] ?? 'org/any'
  const others = `${organization}/project/00000000-aaaa-4000-8000-000000000000/user/00000000-aaaa-4000-8000-000000000000`
  if (!pins(entry, 'oidc.circleci.com/project-id') && takes(entry, others))
    yield 'claims: pin oidc.circleci.com/project-id; as it is, every project of the organization is taken'
  if (!pins(entry, 'oidc.circleci.com/ssh-rerun', 'false'))
    yield 'claims: add oidc.circleci.com/ssh-rerun: "false"; otherwise people who debug a job by SSH have its login'
}

function* terraform(entry: Identity): Generator<string> {
  if (!isOf(entry, /^https:\/\/app\.terraform\.io$/, /^organization:[^:]+:(?:project|workspace|\.)/)) return
  const text = plainText(entry)
  const organization = /^organization:([\w-]+):/.exec(text)?.[1] ?? 'any'
  const project = /:project:([\w -]+):/.exec(text)?.[1] ?? 'any'
  const workspace = /:workspace:([\w-]+):/.exec(text)?.[1] ?? 'any'
  const subject = (name: string, phase: string) =>
    `organization:${organization}:project:${project}:workspace:${name}:run_phase:${phase}`
  if (!pins(entry, 'terraform_workspace_id'))
    yield takes(entry, subject('another', 'apply'))
      ? 'claims: pin terraform_workspace_id; as it is, more workspaces than one are taken'
      : 'claims: pin terraform_workspace_id; the name of a workspace can be given up, and taken by somebody else'
  const phases = ['plan', 'apply'].filter((phase) => takes(entry, subject(workspace, phase)))
  if (phases.length > 1 && !pins(entry, 'terraform_run_phase'))
    yield 'claims: pin terraform_run_phase; a plan runs before anybody has agreed, and has the same rights here'
}

function* kubernetes(entry: Identity): Generator<string> {
  if (!/^system:serviceaccount:/.test(plainText(entry))) return
  if (!pins(entry, 'kubernetes.io/serviceaccount/uid'))
    yield 'claims: pin kubernetes.io/serviceaccount/uid; an account that is deleted can be made again under its name'
}

function* sharedName({ agent, name }: Identity, { identities }: Trusted): Generator<string> {
  if (agent.parts.some((part) => 'claim' in part)) return
  const others = identities.filter((other) => other.name !== name)
  const other = reservedBy({ identities: others, platforms: [] }, agent.text)
  if (other !== undefined)
    yield `agent: the entry "${other}" can give this name, too; the first to log in has it`
}

function* lifetimes({ tokenTtlMs, agentTtlMs }: Identity): Generator<string> {
  if (tokenTtlMs !== undefined && tokenTtlMs > agentTtlMs)
    yield 'token_ttl: is longer than agent_ttl; the access token ends with the agent'
}

/** Of a platform that has its issuer, or that writes its subjects in this way. */
function isOf(entry: Identity, issuer: RegExp, subject: RegExp): boolean {
  const its = entry.issuer.kind === 'issuer' ? entry.issuer.issuer : ''
  return issuer.test(its) || subject.test(plainText(entry))
}

/** The subject or its pattern without the marks of escaped characters. */
const plainText = ({ subject }: Identity) => subject.text.replace(/\\(.)/g, '$1')

const takes = ({ subject }: Identity, one: string) => subject.matches(one)

/** Whether the claim is compared by equality, or by a pattern that takes this value alone. */
const pins = ({ claims }: Identity, claim: string, value?: string) =>
  claims.some(
    (rule) => rule.claim === claim && !rule.isPattern && (value === undefined || rule.text === value),
  )
