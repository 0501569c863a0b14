"""Documentation of a broker's keys about security and quotas; see `documentation.py`."""

from typing import Final

#: Authorization, TLS, SASL, tokens, encrypted settings, quotas.
SECURITY_TEXTS: Final = """\
alter.log.dirs.replication.quota.window.num
    Windows over which the rate of moves between directories is measured.
alter.log.dirs.replication.quota.window.size.seconds
    Seconds of one window of the rate of moves between directories.
authorizer.class.name
    The class that decides who may do what; empty lets everyone do everything. With ZooKeeper it is
    kafka.security.authorizer.AclAuthorizer.
client.quota.callback.class
    A class that decides which quota holds for which client, in place of those by user and client
    id.
connection.failed.authentication.delay.ms
    Milliseconds for which a connection stays open after a failed login, which slows guessing. Must
    be below connections.max.idle.ms.
connections.max.reauth.ms
    Milliseconds for which a login holds; then the client must log in again on the same connection
    or is cut off. 0 never asks again. Can be set for one listener and mechanism.
controller.quota.window.num
    Windows over which the rate of creations and deletions of topics is measured.
controller.quota.window.size.seconds
    Seconds of one window of the rate of creations and deletions of topics.
delegation.token.expiry.check.interval.ms
    Milliseconds between two looks for tokens that have expired.
delegation.token.expiry.time.ms
    Milliseconds for which a token holds unless it is renewed.
delegation.token.master.key
    The older name of delegation.token.secret.key.
delegation.token.max.lifetime.ms
    Milliseconds after which a token cannot be renewed any more.
delegation.token.secret.key
    The secret from which tokens are made and checked; without it there are none. The same on all
    brokers.
password.encoder.cipher.algorithm
    The cipher, as Java names it, with which passwords that are set at run time lie in ZooKeeper.
password.encoder.iterations
    Rounds in which the key for that is made of password.encoder.secret.
password.encoder.key.length
    Bits of the key with which passwords are encrypted.
password.encoder.keyfactory.algorithm
    How the key for that is made, as Java names it; unset, PBKDF2WithHmacSHA512 where there is one.
password.encoder.old.secret
    The former password.encoder.secret: a broker that starts with both encrypts its passwords again.
    Take it away afterwards.
password.encoder.secret
    The secret with which passwords are encrypted before they are kept in ZooKeeper. Without it no
    password of a listener can be set while the broker runs.
principal.builder.class
    The class that makes a user out of a certificate or login. Its names must fit those in ACLs.
quota.window.num
    Windows over which clients' rates of bytes and requests are measured.
quota.window.size.seconds
    Seconds of one window of clients' rates.
replication.quota.window.num
    Windows over which the rate of throttled replication is measured.
replication.quota.window.size.seconds
    Seconds of one window of the rate of throttled replication.
sasl.client.callback.handler.class
    A class that answers what the broker is asked when it logs in to another one.
sasl.enabled.mechanisms
    The mechanisms by which clients may log in, such as SCRAM-SHA-512; all brokers' listeners with
    SASL take them unless one has its own behind listener.name.NAME.
sasl.jaas.config
    The login module and its options, as in a JAAS file, for one listener and mechanism:
    listener.name.NAME.MECHANISM.sasl.jaas.config. It holds passwords and is never shown.
sasl.kerberos.kinit.cmd
    Where kinit is.
sasl.kerberos.min.time.before.relogin
    Milliseconds that Kerberos' thread sleeps at least between two tries for a new ticket.
sasl.kerberos.principal.to.local.rules
    Rules, in krb5.conf's auth_to_local form, that turn Kerberos principals into users; the first
    that fits counts.
sasl.kerberos.service.name
    The name under which brokers are known to Kerberos, if the JAAS settings do not say it.
sasl.kerberos.ticket.renew.jitter
    How much chance, as a part, is put into the moment of a ticket's renewal.
sasl.kerberos.ticket.renew.window.factor
    The part of a ticket's life after which a new one is asked for.
sasl.login.callback.handler.class
    A class that gives login modules what they ask for; for one listener and mechanism behind their
    names.
sasl.login.class
    A class that logs in and refreshes what it got; for one listener and mechanism behind their
    names.
sasl.login.connect.timeout.ms
    Milliseconds to connect to where tokens are had (OAUTHBEARER).
sasl.login.read.timeout.ms
    Milliseconds to wait for an answer from where tokens are had (OAUTHBEARER).
sasl.login.refresh.buffer.seconds
    Seconds before its end at which a token must have been refreshed (OAUTHBEARER).
sasl.login.refresh.min.period.seconds
    Seconds that lie between two refreshes of a token at least (OAUTHBEARER).
sasl.login.refresh.window.factor
    The part of a token's life after which it is refreshed (OAUTHBEARER).
sasl.login.refresh.window.jitter
    How much chance, as a part of its life, is put into the moment of a token's refresh
    (OAUTHBEARER).
sasl.login.retry.backoff.max.ms
    The longest pause between two tries for a token, in milliseconds (OAUTHBEARER).
sasl.login.retry.backoff.ms
    The first pause between two tries for a token, in milliseconds; it doubles with each
    (OAUTHBEARER).
sasl.mechanism.controller.protocol
    The mechanism by which brokers log in to KRaft controllers.
sasl.mechanism.inter.broker.protocol
    The mechanism by which brokers log in to each other; it must be among sasl.enabled.mechanisms.
sasl.oauthbearer.clock.skew.seconds
    Seconds by which clocks may differ when a token's times are checked.
sasl.oauthbearer.expected.audience
    Audiences of which a token must name one; unset, it is not looked at.
sasl.oauthbearer.expected.issuer
    Who must have issued a token; unset, it is not looked at.
sasl.oauthbearer.jwks.endpoint.refresh.ms
    Milliseconds for which keys of the issuer are kept before they are fetched again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    The longest pause between two tries to fetch the issuer's keys, in milliseconds.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    The first pause between two tries to fetch the issuer's keys, in milliseconds; it doubles.
sasl.oauthbearer.jwks.endpoint.url
    Where the issuer's keys are, an https or file URL; tokens are checked by them.
sasl.oauthbearer.scope.claim.name
    The claim of a token that names its scopes.
sasl.oauthbearer.sub.claim.name
    The claim of a token that names the user.
sasl.oauthbearer.token.endpoint.url
    Where a token is had for logging in to other brokers.
sasl.server.callback.handler.class
    A class that checks what clients say when they log in; for one listener and mechanism behind
    their names.
sasl.server.max.receive.size
    The largest message of a login in bytes. Kerberos tickets of users in many groups need more.
security.providers
    Classes that bring Java other providers of security before anything else is loaded.
ssl.allow.dn.changes
    Whether a new keystore may hold a certificate of another subject while the broker runs.
ssl.allow.san.changes
    Whether a new keystore may hold a certificate with other alternative names while the broker
    runs.
ssl.cipher.suites
    Cipher suites that may be used, with commas between them; empty leaves it to Java.
ssl.client.auth
    Whether clients show a certificate: required, requested (they may leave it) or none.
ssl.enabled.protocols
    Versions of TLS that may be spoken; two sides take the best that both have.
ssl.endpoint.identification.algorithm
    https compares the host name with the certificate when brokers connect to each other; an empty
    value does not, and lets anyone with a trusted certificate pose as a broker.
ssl.engine.factory.class
    A class that makes the engines of TLS in another way than Java's stores.
ssl.key.password
    What opens the private key, be it in ssl.keystore.location or in ssl.keystore.key.
ssl.keymanager.algorithm
    Which of Java's key managers reads the keystore.
ssl.keystore.certificate.chain
    The broker's certificate and those that signed it as PEM text, in place of a file; goes with
    ssl.keystore.key.
ssl.keystore.key
    The broker's private key as PEM text (PKCS#8), in place of a file; with ssl.key.password if it
    is encrypted.
ssl.keystore.location
    File with the broker's certificate and key. Setting it again while the broker runs, behind a
    listener's name, loads a renewed certificate without a restart.
ssl.keystore.password
    Password of the file in ssl.keystore.location; PEM files have none.
ssl.keystore.type
    Format of the keystore: JKS, PKCS12 or PEM.
ssl.principal.mapping.rules
    Rules that turn the subject of a client's certificate into a user; the first that fits counts,
    DEFAULT takes the whole subject.
ssl.protocol
    The version of TLS with which Java's context is made; ssl.enabled.protocols decides what is
    spoken.
ssl.provider
    Which of Java's providers does TLS; unset, the first one.
ssl.secure.random.implementation
    Which source of random numbers Java takes for TLS; unset, its own choice.
ssl.trustmanager.algorithm
    Which of Java's trust managers reads the truststore.
ssl.truststore.certificates
    Certificates that are believed as PEM text, in place of a file.
ssl.truststore.location
    File with certificates that are believed. Setting it again while the broker runs, behind a
    listener's name, loads what has changed in it.
ssl.truststore.password
    Password of the file in ssl.truststore.location; without it the file is read but not checked.
ssl.truststore.type
    Format of the truststore: JKS, PKCS12 or PEM.
"""
