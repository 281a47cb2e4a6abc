import type { Context } from '../frame/verb.ts'
import { ask, isAnswered } from './ask.ts'
import { given, type IdentitySource, noToken } from './source.ts'

const TITLE = 'Google Cloud'
/** Required, so that nobody can trick a program into a request by an address alone. Each answer has it, too. */
const HEADERS = { 'metadata-flavor': 'Google' }

/**
 * A token of the machine, its pod or its job, for the service account there
 * (cloud.google.com/compute/docs/instances/verifying-instance-identity). `full` adds the project and the machine. The address
 * is the one that Google's libraries use; GCE_METADATA_HOST names another, as for them.
 */
export const gcp: IdentitySource = {
  name: 'gcp',
  title: TITLE,
  needs: 'the metadata server of Google Cloud at 169.254.169.254',
  isHere: (context) => given(context, 'GCE_METADATA_HOST') !== undefined,
  answers: (context, signal) =>
    isAnswered(context, { url: `${baseOf(context)}/`, headers: HEADERS, signal }, isGoogles),
  workload: baseOf,
  token: async (context, audience, options) => {
    const query = `audience=${encodeURIComponent(audience)}&format=full`
    const path = '/computeMetadata/v1/instance/service-accounts/default/identity'
    const reply = await ask(context, TITLE, {
      url: `${baseOf(context)}${path}?${query}`,
      headers: HEADERS,
      signal: options.signal,
    })
    if (!isGoogles(reply)) throw noToken(TITLE, 'what answers is not its metadata server.')
    return reply.text
  },
}

function baseOf(context: Context): string {
  return `http://${given(context, 'GCE_METADATA_HOST') ?? '169.254.169.254'}`
}

const isGoogles = ({ header }: { header(name: string): string | undefined }) =>
  header('metadata-flavor') === 'Google'
