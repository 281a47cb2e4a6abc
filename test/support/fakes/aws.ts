import { createHash, createHmac } from 'node:crypto'
import { type FakeReply, type FakeRequest, type FakeServer, startFake } from './fake-server.ts'

export interface FakeKey {
  readonly id: string
  readonly secret: string
  status: 'Active' | 'Inactive'
  /** So many sessions that it asks for are refused first: not all servers of STS know it yet. */
  unknownFor: number
}

export interface FakeAws extends FakeServer {
  /** The access keys of the one user, `mayfly`. */
  readonly keys: FakeKey[]
  /** As a person does in the console. */
  addKey(): FakeKey
  /** What the policy of the user does not allow, `iam:DeleteAccessKey`. */
  readonly forbidden: Set<string>
  /** Sessions given, with the key that asked for them. */
  readonly sessions: { readonly keyId: string; readonly name: string }[]
}

export const ROLE = 'arn:aws:iam::123456789012:role/reports'
const ACCOUNT_KEYS = 2

type Xml = (name: string, content: string) => string
const element: Xml = (name, content) => `<${name}>${content}</${name}>`
const reply = (status: number, body: string): FakeReply => ({
  status,
  body,
  headers: { 'content-type': 'text/xml' },
})
const refusal = (status: number, code: string, message = code) =>
  reply(
    status,
    `<ErrorResponse><Error><Type>Sender</Type>${element('Code', code)}${element('Message', message)}</Error></ErrorResponse>`,
  )
const success = (action: string, content: string) =>
  reply(200, element(`${action}Response`, element(`${action}Result`, content)))

/**
 * STS and IAM for one user and one role: signatures (AWS General Reference, "Signature Version 4"), two keys per user, and new keys
 * that STS refuses `lag` times, accepts, and refuses once more (IAM User Guide, "Troubleshoot IAM").
 */
export async function startFakeAws({ lag = 1 } = {}): Promise<FakeAws> {
  const keys: FakeKey[] = []
  const sessions: FakeAws['sessions'] = []
  const forbidden = new Set<string>()
  const uses = new Map<string, number>()
  const create = (unknownFor: number): FakeKey => {
    const id = `AKIA${createHash('sha256').update(crypto.randomUUID()).digest('hex').slice(0, 16).toUpperCase()}`
    const key: FakeKey = { id, secret: crypto.randomUUID(), status: 'Active', unknownFor }
    keys.push(key)
    return key
  }
  const actions: Readonly<Record<string, (form: URLSearchParams, signer: FakeKey) => FakeReply>> = {
    AssumeRole(form, { id }) {
      if (form.get('RoleArn') !== ROLE) return refusal(403, 'AccessDenied')
      const name = form.get('RoleSessionName') ?? ''
      sessions.push({ keyId: id, name })
      const values = { AccessKeyId: 'ASIAFAKEFAKEFAKEFAKE', SecretAccessKey: 's', SessionToken: name }
      const expiration = new Date(Date.now() + Number(form.get('DurationSeconds')) * 1_000).toISOString()
      const parts = Object.entries({ ...values, Expiration: expiration })
      const credentials = parts.map(([field, value]) => element(field, value)).join('')
      return success('AssumeRole', element('Credentials', credentials))
    },
    CreateAccessKey() {
      if (keys.length >= ACCOUNT_KEYS)
        return refusal(409, 'LimitExceeded', 'Cannot exceed quota for AccessKeysPerUser: 2')
      return success('CreateAccessKey', element('AccessKey', described(create(lag), true)))
    },
    ListAccessKeys() {
      const members = keys.map((key) => element('member', described(key, false))).join('')
      return success(
        'ListAccessKeys',
        `<IsTruncated>false</IsTruncated>${element('AccessKeyMetadata', members)}`,
      )
    },
    DeleteAccessKey(form) {
      const at = keys.findIndex(({ id }) => id === form.get('AccessKeyId'))
      if (at === -1) return refusal(404, 'NoSuchEntity')
      keys.splice(at, 1)
      return success('DeleteAccessKey', '')
    },
  }
  /** Refused `unknownFor` times, and once more after it was accepted for the first time. */
  const isKnown = (key: FakeKey) => {
    const use = uses.get(key.id) ?? 0
    uses.set(key.id, use + 1)
    return use >= key.unknownFor && (key.unknownFor === 0 || use !== key.unknownFor + 1)
  }
  const server = await startFake((request) => {
    const form = new URLSearchParams(request.body)
    const action = form.get('Action') ?? ''
    const [service, version] = action === 'AssumeRole' ? ['sts', '2011-06-15'] : ['iam', '2010-05-08']
    const perform = actions[action]
    if (perform === undefined || form.get('Version') !== version) return refusal(400, 'InvalidAction')
    const id = /Credential=(\w+)\//.exec(request.headers.authorization ?? '')?.[1]
    const signer = keys.find((key) => key.id === id)
    const isUsable = signer?.status === 'Active' && (service === 'iam' || isKnown(signer))
    if (signer === undefined || !isUsable) return refusal(403, 'InvalidClientTokenId')
    if (!isSigned(request, signer, service)) return refusal(403, 'SignatureDoesNotMatch')
    if (forbidden.has(`${service}:${action}`)) return refusal(403, 'AccessDenied')
    return perform(form, signer)
  })
  return Object.assign(server, { keys, sessions, forbidden, addKey: () => create(0) })
}

function described({ id, secret, status }: FakeKey, withSecret: boolean): string {
  const shown = { UserName: 'mayfly', AccessKeyId: id, Status: status }
  const fields = Object.entries(withSecret ? { ...shown, SecretAccessKey: secret } : shown)
  return fields.map(([field, value]) => element(field, value)).join('')
}

/** Computed as the service does, from the request as it arrived. */
function isSigned(request: FakeRequest, { id, secret }: FakeKey, service: string): boolean {
  const given = request.headers.authorization ?? ''
  const [, scope = '', names = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=\w+\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      given,
    ) ?? []
  const [day = '', region = ''] = scope.split('/')
  const date = String(request.headers['x-amz-date'])
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
  const headers = names.split(';').map((name) => `${name}:${String(request.headers[name]).trim()}\n`)
  const { pathname } = request.url
  const canonical = ['POST', pathname, '', headers.join(''), names, sha256(request.body)].join('\n')
  const text = ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n')
  const hmac = (key: string | Buffer, part: string) => createHmac('sha256', key).update(part).digest()
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secret}`)
  return (
    scope === `${day}/${region}/${service}/aws4_request` &&
    date.startsWith(day) &&
    given.includes(`Credential=${id}/`) &&
    ['host', 'x-amz-date'].every((name) => names.split(';').includes(name)) &&
    hmac(key, text).toString('hex') === signature
  )
}
