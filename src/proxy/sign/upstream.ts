import { type Signed, type SignedRequest, valuesOf } from './read-signed.ts'

/** A request to a base URL names no host of AWS. What it was signed for says which one would have been called. */
interface Called {
  readonly service: string
  readonly region: string
  readonly path: string
  /** `DynamoDBStreams_20120810.GetRecords`. */
  readonly action: string
  readonly account: string | undefined
}

const LABELS = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/

/** Endpoints that do not begin with the signing name (botocore, `endpointPrefix` beside `signingName`). */
const PREFIXES: Readonly<Record<string, string>> = {
  appstream: 'appstream2',
  awsmobilehubservice: 'mobile',
  'backup-storage': 'backupstorage',
  detective: 'api.detective',
  ecr: 'api.ecr',
  'ecr-public': 'api.ecr-public',
  'elastic-inference': 'api.elastic-inference',
  iotdeviceadvisor: 'api.iotdeviceadvisor',
  ioteventsdata: 'data.iotevents',
  iotfleethub: 'api.fleethub.iot',
  'iot-jobs-data': 'data.jobs.iot',
  iotsecuredtunneling: 'api.tunneling.iot',
  iotwireless: 'api.iotwireless',
  mediatailor: 'api.mediatailor',
  memorydb: 'memory-db',
  mobiletargeting: 'pinpoint',
  pricing: 'api.pricing',
  ses: 'email',
}

/** Signing names that several endpoints share: by path, or by action. The first that fits. */
const SHARED: readonly (readonly [service: string, fits: RegExp, prefix: string])[] = [
  ['bedrock', /^\/(?:model\/[^/]+\/[a-z-]+|guardrail\/|async-invoke)/, 'bedrock-runtime'],
  [
    'bedrock',
    /^\/(?:agents\/[^/]+\/agentAliases\/[^/]+\/sessions|knowledgebases\/[^/]+\/retrieve|retrieveAndGenerate|rerank|sessions|flows\/[^/]+\/aliases\/[^/]+\/?$|optimize-prompt|generateQuery)/,
    'bedrock-agent-runtime',
  ],
  ['bedrock', /^\/(?:agents|knowledgebases|flows|prompts)(?:\/|$)/, 'bedrock-agent'],
  ['dynamodb', /^DynamoDBStreams_/, 'streams.dynamodb'],
  ['sagemaker', /^\/endpoints\/[^/]+\/(?:async-)?invocations/, 'runtime.sagemaker'],
  ['sagemaker', /^\/FeatureGroup\//, 'featurestore-runtime.sagemaker'],
  ['sagemaker', /^/, 'api.sagemaker'],
  ['aws-marketplace', /^AWSMPMeteringService\./, 'metering.marketplace'],
  ['aws-marketplace', /^AWSMPEntitlementService\./, 'entitlement.marketplace'],
  ['aws-marketplace', /^\//, 'catalog.marketplace'],
]

/** One endpoint for all regions, by partition. */
const GLOBAL: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'amazonaws.com': {
    budgets: 'budgets',
    cloudfront: 'cloudfront',
    iam: 'iam',
    route53: 'route53',
    savingsplans: 'savingsplans',
    waf: 'waf',
  },
  'amazonaws.com.cn': { budgets: 'budgets', route53: 'route53' },
}
const GOVERNMENT: Readonly<Record<string, string>> = { iam: 'iam.us-gov', route53: 'route53.us-gov' }
/** Where the caller's own resource is in the host, which nothing in the request says. */
const UNKNOWABLE: ReadonlySet<string> = new Set([
  'execute-api',
  'iotdevicegateway',
  'timestream',
  'cloudsearchdomain',
])

/**
 * The host that a request goes to which came in by a base URL. `suffix`: what follows `*.` in the origin of the use. undefined:
 * what was signed for does not say.
 */
export function upstreamHost(suffix: string, signed: Signed, request: SignedRequest): string | undefined {
  const called: Called = {
    service: signed.service.toLowerCase(),
    region: signed.region.toLowerCase(),
    path: request.target.split('?')[0] ?? '',
    action: valuesOf(request.headers, 'x-amz-target')[0] ?? '',
    account: valuesOf(request.headers, 'x-amz-account-id')[0],
  }
  const name = hostName(suffix, called)
  return name !== undefined && LABELS.test(name) ? `${name}.${suffix}` : undefined
}

function hostName(suffix: string, { service, region, path, action, account }: Called): string | undefined {
  if (UNKNOWABLE.has(service)) return undefined
  const everywhere = region.startsWith('us-gov-') ? GOVERNMENT[service] : GLOBAL[suffix]?.[service]
  if (everywhere !== undefined) return everywhere
  if (service === 's3' && /^\/v20180820\//.test(path))
    return account !== undefined && /^\d{12}$/.test(account) ? `${account}.s3-control.${region}` : undefined
  const shared = SHARED.find(([name, fits]) => name === service && (fits.test(path) || fits.test(action)))
  return `${shared?.[2] ?? PREFIXES[service] ?? service}.${region}`
}
