# Scores mails, one line of base64 each, by SpamAssassin without the network and without what it has learned. It answers a line for
# each: rules and their points, with blanks between.
use strict;
use warnings;
use MIME::Base64;
use Mail::SpamAssassin;

my $filter = Mail::SpamAssassin->new({
  local_tests_only => 1,
  dont_copy_prefs  => 1,
  userprefs_filename => '/dev/null',
  post_config_text => "use_bayes 0\nuse_auto_whitelist 0\nuse_txrep 0\n",
});
while (my $line = <STDIN>) {
  my $mail = $filter->parse(decode_base64($line));
  my $status = $filter->check($mail);
  my $scores = $status->{conf}->{scores};
  print join(' ', map { "$_=" . ($scores->{$_} // 1) } split(/,/, $status->get_names_of_tests_hit())), "\n";
  $status->finish();
  $mail->finish();
}
