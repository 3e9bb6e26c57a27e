import Handlebars from 'handlebars'
import { use } from '../lib/use.mjs'

export default use('handlebars', 'renders a template', 'Hello, Ada!', () =>
  Handlebars.compile('Hello, {{name}}!')({ name: 'Ada' }),
)
