import ipaddr from 'ipaddr.js'
import Type, { type Static } from 'typebox'
import { BackendError, unsupported } from '../../domain/backend-error.ts'
import * as Field from '../fields.ts'

/** The characters of a scope, so that a scope can name each of them. */
const PRINCIPAL = { minLength: 1, maxLength: 128, pattern: '^[A-Za-z0-9._/@+-]+$' }
/** One line: the certificate is a line of text, and so is a log of sshd. */
const COMMAND = { minLength: 1, maxLength: 1024, pattern: '^[^\\u0000-\\u001f\\u007f]+$' }
const ADDRESS = { minLength: 2, maxLength: 49, pattern: '^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$' }

/** Extensions that sshd knows (OpenSSH, PROTOCOL.certkeys, "Extensions"). Without one, what it permits is denied. */
const extension = Type.Union([
  Type.Literal('permit-pty'),
  Type.Literal('permit-port-forwarding'),
  Type.Literal('permit-agent-forwarding'),
  Type.Literal('permit-X11-forwarding'),
  Type.Literal('permit-user-rc'),
  Type.Literal('no-touch-required'),
])

const example = { principals: ['deploy', 'backup'] }

export const config = Field.configOf(example, {
  principals: Field.list(
    Field.text('Principal.', PRINCIPAL),
    64,
    'Principals for which certificates are issued: login names, or names of your own.',
  ),
  extensions: Type.Array(extension, {
    maxItems: 6,
    uniqueItems: true,
    default: ['permit-pty'],
    description: 'What a certificate permits beyond running a command, such as permit-pty.',
  }),
  source_addresses: Type.Optional(
    Field.list(
      Field.text('Address or network.', ADDRESS),
      16,
      'Networks from which certificates are accepted, such as 10.0.0.0/8. Default: any.',
    ),
  ),
  force_command: Type.Optional(Field.text('The one command that a certificate runs.', COMMAND)),
  ca_key: Type.Optional(
    Field.secret('Ed25519 private key of the CA, without a passphrase; generated if absent.', {
      maxLength: 4096,
    }),
  ),
  // Servers that trust another CA accept none of the living certificates.
  ca_public_key: Type.Optional(
    Field.upstream('Public key of the CA, for TrustedUserCAKeys. Leave it out: Mayfly fills it in.', {
      maxLength: 512,
    }),
  ),
})
export type Config = Static<typeof config>

export const params = Field.closed({
  public_key: Type.Optional(
    Field.text('OpenSSH public key to certify. Default: a fresh Ed25519 key pair.', { maxLength: 4096 }),
  ),
  extensions: Type.Optional(
    Type.Array(extension, { maxItems: 6, uniqueItems: true, description: 'Some of the configured ones.' }),
  ),
  source_addresses: Type.Optional(
    Field.list(Type.String(ADDRESS), 16, 'Networks within the configured ones.'),
  ),
  force_command: Type.Optional(Field.text('The one command, if none is configured.', COMMAND)),
})
export type Params = Static<typeof params>

/** The critical options of a certificate (PROTOCOL.certkeys, "Critical options"). Throws `BackendError`. */
export function optionsOf(settings: Config, asked: Params): Record<string, string> {
  const networks = networksOf(settings.source_addresses ?? [], 'misconfigured')
  const wanted = networksOf(asked.source_addresses ?? [], 'unsupported')
  if (networks.length > 0 && !wanted.every((one) => networks.some((network) => contains(network, one)))) {
    throw unsupported('A source address is outside those that the backend permits.')
  }
  const command = settings.force_command ?? asked.force_command
  if (asked.force_command !== undefined && asked.force_command !== command) {
    throw unsupported('The backend prescribes another command.')
  }
  const sources = wanted.length > 0 ? wanted : networks
  return {
    ...(sources.length > 0 && { 'source-address': sources.map(([at, bits]) => `${at}/${bits}`).join(',') }),
    ...(command !== undefined && { 'force-command': command }),
  }
}

export function extensionsOf(settings: Config, asked: Params): readonly string[] {
  if (asked.extensions?.every((one) => settings.extensions.includes(one)) === false)
    throw unsupported('The backend does not permit one of the extensions.')
  return asked.extensions ?? settings.extensions
}

type Network = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

/** Without bits beyond the mask: sshd refuses a certificate whose network has some (addr_pton_cidr in addrmatch.c). */
function networksOf(texts: readonly string[], fault: 'misconfigured' | 'unsupported'): Network[] {
  return texts.map((text) => {
    try {
      const [address, bits] = text.includes('/') ? ipaddr.parseCIDR(text) : wholeAddress(text)
      const family = address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
      return [family.networkAddressFromCIDR(`${address}/${bits}`), bits]
    } catch {
      throw new BackendError(fault, '"source_addresses" contains what is not an address or a network.')
    }
  })
}

function wholeAddress(text: string): Network {
  const address = ipaddr.parse(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

function contains([outer, outerBits]: Network, [inner, innerBits]: Network): boolean {
  return outer.kind() === inner.kind() && innerBits >= outerBits && inner.match(outer, outerBits)
}
