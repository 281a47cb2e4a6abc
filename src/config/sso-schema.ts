import { Type } from 'typebox'

const STRICT = { additionalProperties: false } as const
const file = (description: string) => Type.String({ minLength: 1, maxLength: 4096, description })
const scope = Type.String({ minLength: 1, maxLength: 256 })

/** One entry of `sso` as written in the file. */
export const SsoSchema = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'Name of the provider, unique. The login page shows it.',
    }),
    issuer: Type.String({
      minLength: 1,
      maxLength: 512,
      description: 'Issuer of the provider, exactly as it calls itself: `https` unless `local`.',
    }),
    client_id: Type.String({
      minLength: 1,
      maxLength: 256,
      description: 'Id under which this server is registered there.',
    }),
    client_secret_file: file('File with the secret of that client.'),
    ca_file: Type.Optional(
      file('PEM file with the certificate authorities to trust instead of those of the system.'),
    ),
    local: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'The provider is on this machine or in its own network: permits loopback, link-local and unique-local addresses, and `http`.',
      }),
    ),
    scopes: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
        minItems: 1,
        maxItems: 20,
        description: 'Scopes to request of the provider; default: `openid`, `profile`, `email`.',
      }),
    ),
    groups: Type.Array(
      Type.Object(
        {
          group: Type.String({
            minLength: 1,
            maxLength: 256,
            description: 'A value of the claim `groups`. Case counts.',
          }),
          scopes: Type.Array(scope, { maxItems: 64, description: 'Admin scopes of its members.' }),
          backend_scopes: Type.Optional(
            Type.Array(scope, {
              maxItems: 64,
              description: 'Scopes of backends that its members may grant to agents.',
            }),
          ),
        },
        STRICT,
      ),
      {
        minItems: 1,
        maxItems: 200,
        description: 'What members of groups hold here. Who is in none of them is refused.',
      },
    ),
  },
  STRICT,
)
