import { Component, type ReactNode } from 'react'
import { ErrorNote } from '../ui/notes.tsx'

interface Props {
  /** Where one is: another address is tried again. */
  readonly path: string
  readonly children: ReactNode
}

/** A room that fails does not take the frame with it. */
export class Boundary extends Component<Props, { readonly error?: unknown }> {
  override state: { readonly error?: unknown } = {}
  static getDerivedStateFromError(error: unknown) {
    return { error }
  }
  override componentDidUpdate(before: Props) {
    if (before.path !== this.props.path && this.state.error !== undefined) this.setState({ error: undefined })
  }
  override render() {
    if (this.state.error === undefined) return this.props.children
    return (
      <div className="p-4">
        <ErrorNote error={this.state.error} retry={() => location.reload()} />
      </div>
    )
  }
}
