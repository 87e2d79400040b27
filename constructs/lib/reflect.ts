/**
 * Reflection, which `@peculiar/x509` needs before it is loaded. A module of its own, since a bundler keeps the order of
 * modules, and not that of a CommonJS package that is imported beside them.
 */
import 'reflect-metadata';
